// The tab says how it goes: "63 % llama-7b - Runyard", and the icon's dot has the colour of the state.
import { onBeforeUnmount, watchEffect } from "vue";
import { STATES, type Status } from "@/domain/jobState";

const COLOURS = { primary: "#3b82f6", success: "#22c55e", warning: "#f59e0b", danger: "#ef4444", info: "#9ca3af" };
const PLAIN = "Runyard";

export interface Titled {
  name: string;
  status: Status;
  progress: number | null | undefined;
}

function icon(colour: string): string {
  const drawn = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1f2937"/><path d="M7 23V9h8a5 5 0 0 1 1.5 9.8L21 23" fill="none" stroke="#e5e7eb" stroke-width="3.2" stroke-linejoin="round"/><circle cx="24" cy="24" r="6" fill="${colour}"/></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(drawn)}`;
}

function show(title: string, address: string): void {
  document.title = title;
  document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.setAttribute("href", address);
}

export function usePageTitle(shown: () => Titled | null | undefined): void {
  watchEffect(() => {
    const found = shown();
    if (!found) return;
    const percent = found.progress ? `${Math.floor(found.progress)} % ` : `${STATES[found.status].icon} `;
    show(`${percent}${found.name} - ${PLAIN}`, icon(COLOURS[STATES[found.status].tone]));
  });
  onBeforeUnmount(() => show(PLAIN, "./favicon.svg"));
}
