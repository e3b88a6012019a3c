// The system, about once a second while the calling component is shown: looking costs the server a little.
import { useLink } from "@/stores/link";
import { useSystemStore } from "@/stores/system";

export function useSystem() {
  const system = useSystemStore();
  useLink().subscribe("system", { events: system.hear, reload: () => void system.load().catch(() => undefined) });
  return system;
}
