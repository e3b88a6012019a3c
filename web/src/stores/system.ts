// Machines, GPUs and how many jobs there are of each status.
import { defineStore } from "pinia";
import { computed, shallowRef } from "vue";
import { api, body, type Schemas } from "@/api/client";
import type { LiveEvent } from "@/api/live";
import { Problem } from "@/api/problem";

export type SystemStatus = Schemas["MonitorStatusAnswer"];

export const useSystemStore = defineStore("system", () => {
  const status = shallowRef<SystemStatus>();
  const problem = shallowRef<Problem | null>(null); // why there is nothing newer
  const counts = computed<Record<string, number>>(() => status.value?.counts ?? {});

  async function load(): Promise<void> {
    try {
      status.value = await body(api.GET("/api/v1/training/monitor/status"));
      problem.value = null;
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      problem.value = refused;
    }
  }

  /** Only how many there are: much cheaper than looking at the machines. */
  async function count(): Promise<void> {
    const found = await body(api.GET("/api/v1/training/jobs/counts")).catch(() => null);
    if (found && status.value) status.value = { ...status.value, counts: found.counts };
  }

  function hear(events: LiveEvent[]): void {
    const newest = events.filter((event) => event.type === "system").at(-1);
    if (!newest) return;
    status.value = newest as unknown as SystemStatus;
    problem.value = null;
  }

  return { status, problem, counts, load, count, hear };
});
