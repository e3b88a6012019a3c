// Keys of one part of the page, for as long as it is shown. Off while somebody types, and for good
// when a person turns them off.
import { onBeforeUnmount, ref } from "vue";

const KEPT = "runyard.shortcuts";
const TWO_KEYS_MS = 1200;
export const shortcutsOn = ref(localStorage.getItem(KEPT) !== "off");

export function turnShortcuts(on: boolean): void {
  shortcutsOn.value = on;
  localStorage.setItem(KEPT, on ? "on" : "off");
}

type Keys = Record<string, () => void>;
const layers: Keys[] = [];
let first = { key: "", at: 0 };

function typing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) &&
    (target as HTMLInputElement).type !== "checkbox"
  );
}

function hear(event: KeyboardEvent): void {
  if (!shortcutsOn.value || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (event.key === "Enter" && event.target instanceof HTMLElement && /^(A|BUTTON)$/.test(event.target.tagName)) return;
  if (document.querySelector(".el-overlay:not([style*='display: none'])")) return;
  const single = event.shiftKey && /^[A-Z]$/.test(event.key) ? `Shift+${event.key}` : event.key;
  const pair = Date.now() - first.at < TWO_KEYS_MS ? `${first.key} ${event.key}` : "";
  first = { key: event.key, at: Date.now() };
  for (const keys of [...layers].reverse()) {
    const found = keys[pair] ?? keys[single];
    if (!found) continue;
    event.preventDefault();
    first = { key: "", at: 0 };
    found();
    return;
  }
}

document.addEventListener("keydown", hear);

/** `"j"`, `"Shift+C"`, `"g n"` (two keys one after the other). */
export function useShortcuts(keys: Keys): void {
  layers.push(keys);
  onBeforeUnmount(() => layers.splice(layers.indexOf(keys), 1));
}
