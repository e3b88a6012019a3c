// What the first page shows besides the system: running jobs, the next in the queue, what ended today.
import { computed, shallowRef } from "vue";
import { api, body, page } from "@/api/client";
import { Problem } from "@/api/problem";
import type { operations } from "@/api/schema";
import { isEnded, type Status } from "@/domain/jobState";
import { useJobs, type JobRow } from "@/stores/jobs";
import { useLink } from "@/stores/link";

const DAY_S = 86_400;
const MOST_ACTIVE = 50;
const MOST_ENDED = 200;
const ACTIVE: Status[] = ["running", "scheduled", "cancelling", "retrying"];

type ListQuery = NonNullable<operations["list_jobs"]["parameters"]["query"]>;

export function useNowPage() {
  const jobs = useJobs();
  const active = shallowRef<string[]>([]);
  const next = shallowRef<JobRow[]>([]);
  const ended = shallowRef<string[]>([]);
  const problem = shallowRef<Problem | null>(null);
  const loaded = shallowRef(false);
  const beyond = shallowRef({ active: 0, ended: 0 }); // how many more there are than are listed
  let turn = 0;
  let heard = new Set<string>(); // since the lists were asked for: newer than the answers
  let queueTimer: ReturnType<typeof setTimeout> | null = null;

  async function list(query: ListQuery): Promise<{ ids: string[]; beyond: number }> {
    const asked = jobs.now();
    const found = await page(api.GET("/api/v1/training/jobs", { params: { query } }));
    jobs.keep(found.items, asked);
    return { ids: found.items.map((job) => job.job_id), beyond: Math.max(0, (found.total ?? 0) - found.items.length) };
  }

  async function loadQueue(): Promise<void> {
    const asked = jobs.now();
    const queue = await body(api.GET("/api/v1/training/queue/status", { params: { query: { limit: 3 } as any } }));
    next.value = (queue?.waiting ?? []).slice(0, 3) as JobRow[];
    jobs.keep(next.value, asked);
  }

  async function load(): Promise<void> {
    const [mine, newer] = [(turn += 1), (heard = new Set())];
    try {
      const [runs, day] = await Promise.all([list({ status: ACTIVE, limit: MOST_ACTIVE, curves: true }), listEnded(), loadQueue()]);
      if (mine !== turn) return;
      [active.value, ended.value] = [runs.ids, day.ids];
      beyond.value = { active: runs.beyond, ended: day.beyond };
      for (const id of newer) put(id);
      problem.value = null;
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      if (mine === turn) problem.value = refused;
    } finally {
      if (mine === turn) loaded.value = true;
    }
  }

  /** By when they ended: a training that was submitted last week and failed tonight is the most important of them. */
  async function listEnded(): Promise<{ ids: string[]; beyond: number }> {
    const query = { ended_since: new Date(Date.now() - DAY_S * 1000).toISOString(), sort: "-ended" as const, limit: MOST_ENDED };
    const day = await list(query);
    if (!day.beyond) return day;
    const failed = await list({ ...query, status: ["failed"] }); // none of them is lost behind a thousand small ones
    const ids = [...new Set([...day.ids, ...failed.ids])];
    return { ids, beyond: day.beyond - (ids.length - day.ids.length) };
  }

  /** The queue's order changes with everything: asked again at most once in two seconds. */
  function queueSoon(): void {
    queueTimer ??= setTimeout(() => {
      queueTimer = null;
      void loadQueue().catch(() => undefined);
    }, 2000);
  }

  function hear(events: Parameters<typeof jobs.hear>[0]): void {
    const { changed } = jobs.hear(events);
    for (const { job_id } of changed) {
      heard.add(job_id);
      put(job_id);
    }
    if (changed.length) queueSoon();
  }

  /** Into the list where it belongs now. */
  function put(id: string): void {
    const status = jobs.row(id)?.status;
    const runs = status !== undefined && ACTIVE.includes(status);
    if (runs !== active.value.includes(id)) active.value = runs ? [id, ...active.value] : active.value.filter((one) => one !== id);
    if (status && isEnded(status) && !ended.value.includes(id)) ended.value = [id, ...ended.value];
  }

  void load(); // not only when the link is there
  useLink().subscribe("jobs", { events: hear, reload: () => void load() });
  const endedRows = computed(() => ended.value.flatMap((id) => jobs.row(id) ?? []));
  return { active, next, endedRows, beyond, problem, loaded, load };
}
