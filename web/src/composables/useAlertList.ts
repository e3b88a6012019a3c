// Alerts of one state, kept fresh.
import { shallowRef, watch } from "vue";
import { api, body, page } from "@/api/client";
import { Problem } from "@/api/problem";
import { type Alert, useAlerts } from "@/stores/alerts";
import { type JobRow, useJobs } from "@/stores/jobs";
import { useLink } from "@/stores/link";

const PAGE = 50;
const MOST_NAMED = 20;

export function useAlertList(status: () => Alert["status"]) {
  const alerts = shallowRef<Alert[]>();
  const next = shallowRef<string | null>(null);
  const problem = shallowRef<Problem | null>(null);
  const store = useAlerts();
  const jobs = useJobs();

  async function load(cursor?: string): Promise<void> {
    try {
      const query = { status: [status()], limit: PAGE, cursor };
      const found = await page<Alert>(api.GET("/api/v1/training/alerts", { params: { query } }) as any);
      alerts.value = cursor ? [...(alerts.value ?? []), ...found.items] : found.items;
      next.value = found.next;
      problem.value = null;
      void name(found.items);
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      problem.value = refused;
    }
  }

  /** People know their jobs by name; an alert knows only the id. */
  async function name(found: readonly Alert[]): Promise<void> {
    const unknown = [...new Set(found.map((alert) => alert.job_id))].filter((id): id is string => Boolean(id) && !jobs.row(id as string));
    for (const ref of unknown.slice(0, MOST_NAMED)) {
      const job = await body(api.GET("/api/v1/training/jobs/{ref}", { params: { path: { ref } } })).catch(() => null);
      if (job) jobs.keep([job as JobRow]);
    }
  }

  function put(alert: Alert): void {
    const others = (alerts.value ?? []).filter((one) => one.id !== alert.id);
    if (alert.status !== status()) alerts.value = others;
    else if (others.length === alerts.value?.length) alerts.value = [alert, ...others];
    else alerts.value = (alerts.value ?? []).map((one) => (one.id === alert.id ? alert : one));
  }

  watch(status, () => {
    alerts.value = undefined;
    void load();
  });
  useLink().subscribe("alerts", {
    events: (events) => {
      store.hear(events);
      for (const event of events) if (event.type === "alert") put(event as unknown as Alert);
    },
    reload: () => void load(),
  });
  return { alerts, next, problem, load, put };
}
