// What the tab says: "63 % llama-7b - Runyard", "2 running - Jobs - Runyard", and an icon whose dot has the colour of the state.
import { onScopeDispose, shallowReactive, watchEffect } from "vue";
import { useI18n } from "vue-i18n";
import { useRoute } from "vue-router";
import { STATES, type Status, type Tone } from "@/domain/jobState";
import { useSystemStore } from "@/stores/system";

const COLOURS: Record<Tone, string> = { primary: "#3b82f6", success: "#22c55e", warning: "#f59e0b", danger: "#ef4444", info: "#9ca3af" };
const PLAIN = "Runyard";
const PLAIN_ICON = "./favicon.svg";

export interface Titled {
  text: string;
  tone?: Tone | null;
}

const pages = shallowReactive(new Map<symbol, Titled | null>()); // the last is the one that is shown

function icon(colour: string): string {
  const drawn = [
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#1f2937"/>',
    '<path d="M7 23V9h8a5 5 0 0 1 1.5 9.8L21 23" fill="none" stroke="#e5e7eb" stroke-width="3.2" stroke-linejoin="round"/>',
    `<circle cx="24" cy="24" r="6" fill="${colour}"/></svg>`,
  ].join("");
  return `data:image/svg+xml,${encodeURIComponent(drawn)}`;
}

export function titleOfJob(job: { name: string; status: Status; progress?: number | null }): Titled {
  const state = STATES[job.status];
  return { text: `${job.progress && !state.ended ? `${Math.floor(job.progress)} %` : state.icon} ${job.name}`, tone: state.tone };
}

/** For a page that knows more than its name. */
export function usePageTitle(shown: () => Titled | null | undefined): void {
  const mine = Symbol("page");
  watchEffect(() => void pages.set(mine, shown() ?? null));
  onScopeDispose(() => pages.delete(mine));
}

/** For a page of many jobs: how many run. */
export function useRunningTitle(title: string, tone: (running: number) => Tone | null): void {
  const system = useSystemStore();
  const { t } = useI18n();
  usePageTitle(() => {
    const running = (system.counts.running ?? 0) + (system.counts.scheduled ?? 0);
    return { text: running ? `${t("now.running", { count: running })} - ${t(title)}` : t(title), tone: tone(running) };
  });
}

/** Once, around all pages. */
export function useDocumentTitle(): void {
  const route = useRoute();
  const { t } = useI18n();
  watchEffect(() => {
    const page = route.meta.title ? t(route.meta.title as string) : "";
    const { text, tone } = [...pages.values()].at(-1) ?? { text: page, tone: null };
    document.title = text ? `${text} - ${PLAIN}` : PLAIN;
    document.querySelector<HTMLLinkElement>('link[rel="icon"]')?.setAttribute("href", tone ? icon(COLOURS[tone]) : PLAIN_ICON);
  });
}
