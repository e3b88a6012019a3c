// Open alerts: the badge in the rail and the list that needs you.
import { defineStore } from "pinia";
import { computed, shallowReactive } from "vue";
import { api, page, type Schemas } from "@/api/client";
import type { LiveEvent } from "@/api/live";

export type Alert = Schemas["AlertAnswer"];

export const useAlerts = defineStore("alerts", () => {
  const open = shallowReactive(new Map<number, Alert>());
  const count = computed(() => open.size);

  async function load(): Promise<void> {
    const found = await page<Alert>(api.GET("/api/v1/training/alerts", { params: { query: { status: ["open"], limit: 200 } } }) as any);
    open.clear();
    for (const alert of found.items) open.set(alert.id, alert);
  }

  function hear(events: LiveEvent[]): void {
    for (const event of events) {
      if (event.type !== "alert") continue;
      const alert = event as unknown as Alert;
      if (alert.status === "open") open.set(alert.id, alert);
      else open.delete(alert.id);
    }
  }

  return { open, count, load, hear };
});
