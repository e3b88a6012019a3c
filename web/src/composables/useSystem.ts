// The system, about once a second while the calling component is shown: looking costs the server a little.
import { useLink } from "@/stores/link";
import { useSystemStore } from "@/stores/system";

export function useSystem() {
  const system = useSystemStore();
  if (!system.status) void system.load(); // not only when the link is there
  useLink().subscribe("system", { events: system.hear, reload: () => void system.load(), glance: () => void system.count() });
  return system;
}
