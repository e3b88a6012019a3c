// The list of jobs behind the filters in the URL: pages of 50, kept fresh by the live link, and
// never moved under the reader's eyes.
import { computed, onScopeDispose, ref, shallowRef, watch } from "vue";
import { useRoute, useRouter } from "vue-router";
import { api, page, type Schemas } from "@/api/client";
import { Problem } from "@/api/problem";
import { STATUSES, type Status } from "@/domain/jobState";
import { useJobs, type JobRow } from "@/stores/jobs";
import { useLink } from "@/stores/link";

const PAGE = 50;
const MOST_AT_ONCE = 500; // of the server
const SOON_MS = 1000;
// What was listed when the page was left: whoever comes back finds the same rows at the same place.
const left = { filters: "", ids: [] as string[], next: null as string | null, total: null as number | null };
/** The list as it was looked through last, for a job's page to go to the next. */
export const lastListed = (): readonly string[] => left.ids;
const TEXTS = ["q", "owner", "type", "label"] as const;
const UNFILTERED = JSON.stringify({ status: [], q: "", owner: "", type: "", label: "" });
export type JobFilters = { status: Status[] } & Record<(typeof TEXTS)[number], string>;

export function useJobList() {
  const route = useRoute();
  const router = useRouter();
  const jobs = useJobs();
  const ids = shallowRef<string[]>([]);
  const fresh = ref<string[]>([]); // came in while the reader looked
  const total = ref<number | null>(null);
  const next = ref<string | null>(null);
  const loading = ref(false);
  const problem = shallowRef<Problem | null>(null);
  const reading = ref(false); // the pointer is over the list
  let turn = 0;
  let atLeast = 0; // rows that somebody asked for: a reload that comes in between brings them too
  let heard: string[] = []; // new since the list was asked for, the newest first
  let placed = ""; // the filters of the rows that are shown
  let owed = false; // to be asked anew when nobody points at the list any more
  let timer: ReturnType<typeof setTimeout> | null = null;
  const judged = new Map<string, string>(); // the status in which a job was left to the server to judge

  const filters = computed<JobFilters>(() => ({
    status: String(route.query.status ?? "").split(",").filter((word): word is Status => STATUSES.includes(word as Status)),
    q: text("q"),
    owner: text("owner"),
    type: text("type"),
    label: text("label"),
  }));

  function text(name: string): string {
    return String(route.query[name] ?? "");
  }

  function filter(changed: Partial<JobFilters>): void {
    const wanted = { ...filters.value, ...changed };
    const query: Record<string, string> = {};
    if (wanted.status.length) query.status = wanted.status.join(",");
    for (const name of TEXTS) if (wanted[name]) query[name] = wanted[name];
    void router.replace({ query });
  }

  async function load(cursor: string | null = null): Promise<void> {
    const mine = (turn += 1);
    const asked = jobs.now();
    if (!cursor) heard = [];
    loading.value = true;
    const { status, q, owner, type, label } = filters.value;
    const query = {
      status: status.length ? status : undefined,
      q: q || undefined,
      owner: owner || undefined,
      type: type || undefined,
      label: label ? [label] : undefined,
      limit: cursor ? PAGE : Math.min(MOST_AT_ONCE, Math.max(PAGE, ids.value.length, atLeast)), // a reload shows no less
      curves: true,
      cursor: cursor ?? undefined,
    };
    try {
      const found = await page<Schemas["JobAnswer"]>(api.GET("/api/v1/training/jobs", { params: { query: query as any } }) as any);
      if (mine !== turn) return;
      jobs.keep(found.items, asked);
      const loaded = found.items.map((job) => job.job_id).filter((id) => jobs.row(id));
      if (cursor) ids.value = [...ids.value, ...loaded.filter((id) => !ids.value.includes(id))];
      const missed = cursor ? [] : heard.filter((id) => !loaded.includes(id) && isWithin(submitted(id), loaded, found.next));
      if (!cursor) place(inserted(loaded, missed));
      atLeast = 0;
      total.value = found.total === null ? null : found.total + missed.length;
      next.value = found.next;
      problem.value = null;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (mine === turn) problem.value = error;
    } finally {
      if (mine === turn) loading.value = false;
    }
  }

  /** Also a reload of the same list leaves what somebody points at where it is: only the end may grow. */
  function place(loaded: string[]): void {
    const known = new Set(ids.value);
    const last = loaded.findLastIndex((id) => known.has(id));
    const still = reading.value && placed === key.value && last >= 0;
    placed = key.value;
    owed = still;
    fresh.value = still ? loaded.slice(0, last).filter((id) => !known.has(id)) : [];
    ids.value = still ? [...ids.value.filter((id) => jobs.row(id)), ...loaded.slice(last + 1)] : loaded;
  }

  const submitted = (id: string | undefined): string => String((id && jobs.row(id)?.submitted_at) || "");

  /** Each where the server would list it; `more` has the newest first. */
  function inserted(listed: readonly string[], more: readonly string[]): string[] {
    const whole = [...listed];
    for (const id of [...more].reverse()) {
      const at = whole.findIndex((other) => submitted(other) <= submitted(id));
      whole.splice(at < 0 ? whole.length : at, 0, id);
    }
    return whole;
  }

  /** Not of a page that nobody asked for yet. */
  function isWithin(at: string, listed: readonly string[], further: string | null): boolean {
    return !further || at >= submitted(listed.at(-1));
  }

  function mayBelong(row: JobRow): boolean {
    const { status, owner, type } = filters.value;
    return (!status.length || status.includes(row.status)) && (!owner || row.owner === owner) && (!type || row.job_type === type);
  }

  /** Only the server knows what a search and a label choose: it is asked once for each status of a job. */
  function judge(rows: readonly JobRow[]): void {
    const unsure = rows.filter((row) => judged.get(row.job_id) !== row.status);
    for (const row of unsure) judged.set(row.job_id, row.status);
    if (unsure.length) soon();
  }

  function soon(): void {
    timer ??= setTimeout(() => {
      timer = null;
      if (reading.value) owed = true;
      else void load();
    }, SOON_MS);
  }

  function hear(events: Parameters<typeof jobs.hear>[0]): void {
    const { changed, deleted } = jobs.hear(events);
    if (deleted.length) forget(deleted);
    const known = new Set([...ids.value, ...fresh.value]);
    const added = changed.filter((row) => !known.has(row.job_id) && mayBelong(row) && isWithin(submitted(row.job_id), ids.value, next.value));
    if (!added.length) return;
    if (filters.value.q || filters.value.label) return judge(added);
    if (total.value !== null) total.value += added.length;
    const newest = added.map((row) => row.job_id).reverse();
    heard = [...newest, ...heard];
    fresh.value = [...newest, ...fresh.value];
    if (!reading.value) showFresh();
  }

  /** Of rows that are not loaded only the server knows whether the filters chose them. */
  function forget(deleted: string[]): void {
    const chosen = key.value === UNFILTERED ? deleted : deleted.filter((id) => ids.value.includes(id) || fresh.value.includes(id));
    if (total.value !== null) total.value = Math.max(0, total.value - chosen.length);
    const stays = (id: string) => !deleted.includes(id);
    [ids.value, fresh.value, heard] = [ids.value.filter(stays), fresh.value.filter(stays), heard.filter(stays)];
  }

  function showFresh(): void {
    ids.value = inserted(ids.value, fresh.value);
    fresh.value = [];
  }

  function leave(): void {
    if (fresh.value.length) showFresh();
    if (!owed) return;
    owed = false;
    void load();
  }

  const key = computed(() => JSON.stringify(filters.value));
  if (left.filters === key.value && left.ids.every((id) => jobs.row(id))) {
    [ids.value, next.value, total.value] = [left.ids, left.next, left.total];
  }
  watch([ids, next], () => Object.assign(left, { filters: key.value, ids: ids.value, next: next.value, total: total.value }));
  watch(reading, (looks) => !looks && leave());
  onScopeDispose(() => timer && clearTimeout(timer));
  watch(key, () => {
    judged.clear();
    ids.value = ids.value.slice(0, PAGE);
    atLeast = 0;
    void load();
  });
  void load(); // not only when the link is there: the first rows should not wait for it
  useLink().subscribe("jobs", { events: hear, reload: () => void load() });

  function more(): Promise<void> {
    atLeast = ids.value.length + PAGE;
    return load(next.value);
  }

  return { ids, fresh, total, next, loading, problem, reading, filters, filter, load, showFresh, more };
}
