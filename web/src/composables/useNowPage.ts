// What the first page shows besides the system: running jobs, the next in the queue, what ended today.
import { computed, shallowRef } from "vue";
import { api, body, page, type Schemas } from "@/api/client";
import { isEnded, type Status } from "@/domain/jobState";
import { useJobs, type JobRow } from "@/stores/jobs";
import { useLink } from "@/stores/link";
import { Problem } from "@/api/problem";

const DAY_S = 86_400;
const ACTIVE: Status[] = ["running", "scheduled", "cancelling", "retrying"];

export function useNowPage() {
  const jobs = useJobs();
  const active = shallowRef<string[]>([]);
  const next = shallowRef<JobRow[]>([]);
  const ended = shallowRef<string[]>([]);
  const problem = shallowRef<Problem | null>(null);
  const loaded = shallowRef(false);
  let queueTimer: ReturnType<typeof setTimeout> | null = null;

  async function list(query: object): Promise<string[]> {
    const found = await page<Schemas["JobAnswer"]>(api.GET("/api/v1/training/jobs", { params: { query: query as any } }) as any);
    jobs.keep(found.items);
    return found.items.map((job) => job.job_id);
  }

  async function loadQueue(): Promise<void> {
    const queue = await body(api.GET("/api/v1/training/queue/status", { params: { query: { limit: 3 } as any } }));
    next.value = (queue?.waiting ?? []).slice(0, 3) as JobRow[];
    jobs.keep(next.value);
  }

  async function load(): Promise<void> {
    try {
      const since = new Date(Date.now() - DAY_S * 1000).toISOString();
      [active.value, ended.value] = await Promise.all([
        list({ status: ACTIVE, limit: 50, curves: true }),
        list({ status: ["completed", "failed", "cancelled"], since, limit: 200 }),
        loadQueue(),
      ]);
      problem.value = null;
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      problem.value = refused;
    } finally {
      loaded.value = true;
    }
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
    for (const row of changed) {
      const runs = ACTIVE.includes(row.status);
      if (runs !== active.value.includes(row.job_id)) {
        active.value = runs ? [row.job_id, ...active.value] : active.value.filter((id) => id !== row.job_id);
      }
      if (isEnded(row.status) && !ended.value.includes(row.job_id)) ended.value = [row.job_id, ...ended.value];
    }
    if (changed.length) queueSoon();
  }

  void load(); // not only when the link is there
  useLink().subscribe("jobs", { events: hear, reload: () => void load() });
  const endedRows = computed(() => ended.value.flatMap((id) => jobs.row(id) ?? []));
  return { active, next, endedRows, problem, loaded, load };
}
