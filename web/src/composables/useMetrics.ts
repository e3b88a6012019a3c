// Every metric of a job: loaded once, then told point by point. Series are no reactive things; `versions` says which changed.
import { computed, onScopeDispose, ref, shallowReactive, shallowRef } from "vue";
import { api, body } from "@/api/client";
import type { operations } from "@/api/schema";
import type { LiveEvent } from "@/api/live";
import { Problem } from "@/api/problem";
import { byName } from "@/domain/curve";
import { add, refine as refined, seriesOf, type Points, type Series } from "@/domain/series";
import { useLink } from "@/stores/link";

const POINTS = 2000;
const DETAIL = 10_000;

type MetricsQuery = NonNullable<operations["get_job_metrics"]["parameters"]["query"]>;

export async function askMetrics(jobRef: string, query: MetricsQuery): Promise<Record<string, Points & { sampled: boolean }>> {
  const asked = api.GET("/api/v1/training/jobs/{ref}/metrics", { params: { path: { ref: jobRef }, query } });
  return (await body(asked)).series;
}

/** `only`: the names that are wanted; all by default. */
export function useMetrics(jobRef: string, newestAttempt: () => number, only?: readonly string[]) {
  const series = new Map<string, Series>();
  const versions = shallowReactive(new Map<string, number>());
  const names = computed(() => [...versions.keys()].sort(byName));
  const problem = shallowRef<Problem | null>(null);
  const there = ref(false);
  const dirty = new Set<string>();
  let waiting: LiveEvent[] | null = null; // what is told while the present state is loaded
  let turn = 0;
  let frame = 0;

  function changed(name: string): void {
    dirty.add(name);
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      for (const one of dirty) versions.set(one, (versions.get(one) ?? 0) + 1);
      dirty.clear();
    });
  }

  const ask = (query: MetricsQuery) => askMetrics(jobRef, query);

  async function load(): Promise<void> {
    const mine = (turn += 1);
    waiting ??= [];
    try {
      const attempt = newestAttempt();
      const found = await ask({ points: POINTS, ...(only ? { keys: [...only] } : {}) });
      if (mine !== turn) return;
      for (const name of series.keys()) if (!(name in found)) forget(name);
      for (const [name, points] of Object.entries(found)) {
        series.set(name, seriesOf(points, attempt));
        changed(name);
      }
      problem.value = null;
      there.value = true;
    } catch (error) {
      if (mine !== turn) return;
      if (!(error instanceof Problem)) throw error;
      problem.value = error;
    }
    const missed = waiting ?? [];
    waiting = null;
    hear(missed);
  }

  function forget(name: string): void {
    series.delete(name);
    versions.delete(name);
  }

  function hear(events: LiveEvent[]): void {
    if (waiting) return void waiting.push(...events);
    for (const event of events) {
      if (event.type !== "points") continue;
      for (const [name, points] of Object.entries(event.series as Record<string, Points>)) {
        if (only && !only.includes(name)) continue;
        const found = series.get(name) ?? seriesOf({ steps: [], times: [], values: [] }, event.attempt);
        series.set(name, found);
        add(found, points, event.attempt);
        changed(name);
      }
    }
  }

  const wanted = new Map<string, [number, number]>();

  /** Every point of a part that somebody looks at closely. Charts that ask in one moment ask together. */
  function refine(name: string, since: number, until: number): void {
    if (!wanted.size) setTimeout(() => void fetchDetail(), 200);
    wanted.set(name, [since, until]);
  }

  async function fetchDetail(): Promise<void> {
    const [keys, parts] = [[...wanted.keys()], [...wanted.values()]];
    wanted.clear();
    const since = Math.min(...parts.map((part) => part[0]));
    const until = Math.max(...parts.map((part) => part[1]));
    const mine = turn;
    const part = { keys, since: String(since), until: String(until), points: DETAIL };
    const found = await ask(part).catch(() => null); // the coarse line stays
    if (!found || mine !== turn) return;
    for (const [name, points] of Object.entries(found)) {
      const known = series.get(name);
      if (!known) continue;
      refined(known, seriesOf(points), since, until);
      changed(name);
    }
  }

  useLink().subscribe(`metrics:${jobRef}`, { events: hear, reload: () => void load() });
  onScopeDispose(() => {
    turn += 1;
    cancelAnimationFrame(frame);
  });
  return { series: (name: string) => series.get(name), versions, names, problem, there, load, refine };
}

export type Metrics = ReturnType<typeof useMetrics>;
