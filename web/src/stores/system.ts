// Machines, GPUs and how many jobs there are of each status.
import { defineStore } from "pinia";
import { computed, shallowRef } from "vue";
import { api, body, type Schemas } from "@/api/client";
import type { LiveEvent } from "@/api/live";

export type SystemStatus = Schemas["MonitorStatusAnswer"];

export const useSystemStore = defineStore("system", () => {
  const status = shallowRef<SystemStatus>();
  const counts = computed<Record<string, number>>(() => status.value?.counts ?? {});

  async function load(): Promise<void> {
    status.value = await body(api.GET("/api/v1/training/monitor/status"));
  }

  function hear(events: LiveEvent[]): void {
    const newest = events.filter((event) => event.type === "system").at(-1);
    if (newest) status.value = newest as unknown as SystemStatus;
  }

  return { status, counts, load, hear };
});
