// A notification of the browser when a job of mine ends, while a tab of Runyard is open.
import { ref } from "vue";
import type { LiveEvent } from "@/api/live";
import { isEnded, type Status } from "@/domain/jobState";
import { wording } from "@/i18n";
import { router } from "@/router";
import { useLink } from "@/stores/link";
import { useSession } from "@/stores/session";

const KEPT = "runyard.telling";
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
  const running = new Map<string, boolean>(); // seen alive, so that old ends are not told again

  function hear(events: LiveEvent[]): void {
    for (const event of events) {
      if (event.type !== "job" || event.owner !== session.who?.name) continue;
      const id = String(event.job_id);
      const ended = isEnded(event.status as Status);
      if (ended && running.get(id) && telling.value) tell(id, event);
      if (ended) running.delete(id);
      else running.set(id, true);
    }
  }

  function tell(id: string, event: LiveEvent): void {
    const shown = new Notification(`${event.name}: ${wording.value.status(String(event.status))}`, { body: wording.value.reason(event.reason), tag: id });
    shown.onclick = () => {
      window.focus();
      void router.push({ name: "job", params: { jobRef: id } });
    };
  }

  useLink().subscribe("jobs", { events: hear, reload: () => undefined });
}
