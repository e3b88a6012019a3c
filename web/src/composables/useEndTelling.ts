// A notification of the browser when a job of mine ends, while a tab of Runyard is open, looked at or not.
import { ref, watch } from "vue";
import { api, body, page } from "@/api/client";
import type { LiveEvent } from "@/api/live";
import type { Problem } from "@/api/problem";
import { isEnded, STATUSES, type Status } from "@/domain/jobState";
import { wording } from "@/i18n";
import { router } from "@/router";
import { useLink } from "@/stores/link";
import { useSession } from "@/stores/session";

const KEPT = "runyard.telling";
const MOST_LIVING = 500; // of the server
const MOST_ENDED = 20; // that are asked for after a gap
export const telling = ref(localStorage.getItem(KEPT) === "on");

/** False when the browser does not allow it. */
export async function turnTelling(on: boolean): Promise<boolean> {
  const allowed = !on || ("Notification" in window && (await Notification.requestPermission()) === "granted");
  telling.value = on && allowed;
  localStorage.setItem(KEPT, telling.value ? "on" : "off");
  return allowed;
}

export function useEndTelling(): void {
  const session = useSession();
  const link = useLink();
  const lives = new Map<string, boolean>(); // seen alive, so that old ends are not told again

  function hear(events: LiveEvent[]): void {
    for (const event of events) {
      if (event.type !== "job" || event.owner !== session.who?.name) continue;
      const id = String(event.job_id);
      const ended = isEnded(event.status as Status);
      if (ended && lives.get(id) && telling.value) tell(id, event);
      lives.set(id, !ended);
    }
  }

  function tell(id: string, event: LiveEvent): void {
    const shown = new Notification(`${event.name}: ${wording.value.status(String(event.status))}`, {
      body: wording.value.reason(event.reason),
      tag: id,
    });
    shown.onclick = () => {
      window.focus();
      void router.push({ name: "job", params: { jobRef: id } });
    };
  }

  /** At the beginning, and after a gap that nobody can tell of any more. */
  async function look(): Promise<void> {
    if (!telling.value || !session.who) return;
    const query = { owner: [session.who.name], status: STATUSES.filter((status) => !isEnded(status)), limit: MOST_LIVING };
    const found = await page(api.GET("/api/v1/training/jobs", { params: { query } })).catch(() => null);
    if (!found) return;
    const living = new Set(found.items.map((job) => job.job_id));
    const over = [...lives.keys()].filter((id) => lives.get(id) && !living.has(id));
    for (const id of living) if (!lives.has(id)) lives.set(id, true);
    for (const ref of over.slice(0, found.next ? 0 : MOST_ENDED)) {
      const job = await body(api.GET("/api/v1/training/jobs/{ref}", { params: { path: { ref } } })).catch((refused: Problem) => refused);
      if (!(job instanceof Error)) hear([{ ...job, type: "job" }]);
      else if (job.code === "job_not_found") lives.delete(ref);
    }
  }

  watch(telling, () => void look());
  link.subscribe("jobs", {
    events: hear,
    reload: () => void look(),
    staysOn: () => telling.value,
    glance: () => link.state !== "live" && void look(),
  });
}
