// The list of jobs behind the filters in the URL: pages of 50, kept fresh by the live link, and
// never moved under the reader's eyes.
import { computed, ref, shallowRef, watch } from "vue";
import { useRoute, useRouter } from "vue-router";
import { api, page, type Schemas } from "@/api/client";
import { Problem } from "@/api/problem";
import { STATUSES, type Status } from "@/domain/jobState";
import { useJobs, type JobRow } from "@/stores/jobs";
import { useLink } from "@/stores/link";

const PAGE = 50;
const MOST_AT_ONCE = 500; // of the server
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
      else place([...heard.filter((id) => !loaded.includes(id)), ...loaded]);
      atLeast = 0;
      total.value = found.total;
      next.value = found.next;
      problem.value = null;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (mine === turn) problem.value = error;
    } finally {
      if (mine === turn) loading.value = false;
    }
  }

  /** Also a reload of the same list leaves what somebody points at where it is. */
  function place(loaded: string[]): void {
    const known = loaded.findIndex((id) => ids.value.includes(id));
    const above = reading.value && placed === key.value ? Math.max(known, 0) : 0;
    placed = key.value;
    fresh.value = loaded.slice(0, above);
    ids.value = loaded.slice(above);
  }

  /** The server decides what a filter means; here only what is certainly right is added at once. */
  function belongs(row: JobRow): boolean {
    const { status, q, owner, type, label } = filters.value;
    return (!status.length || status.includes(row.status)) && !q && !label && (!owner || row.owner === owner) && (!type || row.job_type === type);
  }

  function hear(events: Parameters<typeof jobs.hear>[0]): void {
    const { changed, deleted } = jobs.hear(events);
    if (deleted.length) forget(deleted);
    const known = new Set([...ids.value, ...fresh.value]);
    const added = changed.filter((row) => !known.has(row.job_id) && row.retry_count === 0 && belongs(row) && isNewest(row));
    if (!added.length) return;
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

  function isNewest(row: JobRow): boolean {
    const first = ids.value[0] === undefined ? undefined : jobs.row(ids.value[0]);
    return !first || String(row.submitted_at) >= String(first.submitted_at);
  }

  function showFresh(): void {
    ids.value = [...fresh.value, ...ids.value];
    fresh.value = [];
  }

  const key = computed(() => JSON.stringify(filters.value));
  if (left.filters === key.value && left.ids.every((id) => jobs.row(id))) {
    [ids.value, next.value, total.value] = [left.ids, left.next, left.total];
  }
  watch([ids, next], () => Object.assign(left, { filters: key.value, ids: ids.value, next: next.value, total: total.value }));
  watch(reading, (looks) => !looks && fresh.value.length && showFresh());
  watch(key, () => {
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
