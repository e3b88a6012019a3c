// Events and diagnoses of a job as one line of what happened and what the system did about it.
import type { Attempt, JobEvent } from "@/composables/useJob";

export interface StoryEntry {
  key: string;
  at: string;
  code: string;
  actor: string;
  attempt: number | null;
  params: Record<string, any>;
  failure: Failure | null;
}

export interface Failure {
  attempt: number;
  category: string | null;
  failure_type: string | null;
  confidence: number | null;
  explanation: { code: string; params: Record<string, any> } | null;
  root: { rank: number; number: number | null; text: string } | null;
  plan: { code: string; params: Record<string, any> } | null;
  changes: { name?: string; before?: unknown; after?: unknown }[];
}

// Said by others already, or of interest to a log file only.
const SILENT = new Set(["resources_released", "attempt_ended"]);
const ENDS = new Set(["job_failed", "job_retrying"]);

function numberOf(attemptId: string | null): number | null {
  const found = attemptId?.match(/\.(\d+)$/);
  return found ? Number(found[1]) : null;
}

/** Oldest first; what went wrong stands with the event that ended its attempt. */
export function storyOf(events: readonly JobEvent[], failures: readonly Failure[]): StoryEntry[] {
  const open = new Map(failures.map((failure) => [failure.attempt, failure]));
  return events
    .filter((event) => !SILENT.has(event.code))
    .map((event) => {
      const attempt = numberOf(event.attempt_id);
      const failure = attempt !== null && ENDS.has(event.code) ? (open.get(attempt) ?? null) : null;
      if (failure) open.delete(failure.attempt);
      return { key: String(event.id), at: event.at, code: event.code, actor: event.actor, attempt, params: event.params, failure };
    });
}

/** What one attempt was given that the one before it was not. */
export function changesOf(attempt: Attempt): { name: string; before: string; after: string }[] {
  return (attempt.changes ?? []).map((change) => ({
    name: change.name,
    before: shown(change.before),
    after: shown(change.after),
  }));
}

function shown(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
