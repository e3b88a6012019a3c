// The scheduler's order with its reasons, asked again when something changed, at most once a second.
import { onBeforeUnmount, shallowRef } from "vue";
import { api, body, type Schemas } from "@/api/client";
import { Problem } from "@/api/problem";
import { useJobs } from "@/stores/jobs";
import { useLink } from "@/stores/link";

const SOON_MS = 1000;
const ANYWAY_MS = 15_000; // estimates move by themselves
export const SHOWN = 100;

export interface QueueState {
  queue: Schemas["QueueAnswer"];
  capacity: Schemas["CapacityAnswer"] | null;
  history: Schemas["WaitHistoryAnswer"] | null;
}

export function useQueue() {
  const jobs = useJobs();
  const state = shallowRef<QueueState>();
  const problem = shallowRef<Problem | null>(null);
  let timer: ReturnType<typeof setTimeout> | null = null;

  async function load(): Promise<void> {
    const asked = jobs.now();
    try {
      const [queue, capacity, history] = await Promise.all([
        body(api.GET("/api/v1/training/queue/status", { params: { query: { limit: SHOWN } } })),
        body(api.GET("/api/v1/training/queue/capacity")).catch(() => null),
        body(api.GET("/api/v1/training/queue/history")).catch(() => null),
      ]);
      state.value = { queue: queue!, capacity: capacity ?? null, history: history ?? null };
      jobs.keep([...queue!.waiting, ...queue!.running], asked);
      problem.value = null;
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      problem.value = refused;
    }
  }

  function soon(): void {
    timer ??= setTimeout(() => {
      timer = null;
      void load();
    }, SOON_MS);
  }

  const anyway = setInterval(() => !document.hidden && void load(), ANYWAY_MS);
  onBeforeUnmount(() => {
    clearInterval(anyway);
    if (timer) clearTimeout(timer);
  });
  useLink().subscribe("jobs", {
    events: (events) => {
      jobs.hear(events);
      soon();
    },
    reload: () => void load(),
  });
  return { state, problem, load };
}
