// The chapters of a job's story as the server tells them, fit for the page.
import type { Schemas } from "@/api/client";
import { valueText } from "./amounts";

export type Chapter = Schemas["ChapterAnswer"];

/** Why the next attempt is what it is: `{code, params}` that the words of plans know. */
export function planOf(chapter: Chapter): { code: string; params: Record<string, unknown> } | null {
  const reason = chapter.action?.params.reason as { code: string; params: Record<string, unknown> } | undefined;
  return reason ?? chapter.action;
}

export interface Changed {
  name: string;
  before?: unknown;
  after?: unknown;
}

/** What was changed, as text. */
export function changesOf(changes: readonly Changed[] | null | undefined): { name: string; before: string; after: string }[] {
  return (changes ?? []).map((change) => ({ name: change.name, before: valueText(change.before), after: valueText(change.after) }));
}
