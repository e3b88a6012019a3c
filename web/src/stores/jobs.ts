// The newest known row of every job on screen. Cells read one job by its id, so that a change
// redraws a cell and not a table.
import { defineStore } from "pinia";
import { shallowReactive } from "vue";
import type { Schemas } from "@/api/client";
import type { LiveEvent } from "@/api/live";

export type JobRow = Partial<Schemas["JobAnswer"]> & Pick<Schemas["JobAnswer"], "job_id" | "name" | "status"> & Record<string, any>;

const MOST = 5000;

/** Messages tell no wait (it is of the queue): one that was answered counts only for as long as its reason does. */
function merged(older: JobRow | undefined, newer: JobRow): JobRow {
  const whole = { ...older, ...newer };
  const other = newer.status !== older?.status || (newer.reason !== undefined && newer.reason?.code !== whole.wait?.code);
  if (whole.wait && newer.wait === undefined && other) whole.wait = null;
  return Object.freeze(whole);
}

export const useJobs = defineStore("jobs", () => {
  const rows = shallowReactive(new Map<string, JobRow>());
  const told = new Map<string, number>(); // when a job was told of last, counted in messages
  let messages = 0;

  /** An answer may come after messages that are newer than it: `asked` is what `now()` was before the question. */
  function keep(found: Iterable<JobRow>, asked = messages): void {
    for (const row of found) {
      const known = rows.get(row.job_id);
      const newer = (told.get(row.job_id) ?? 0) > asked;
      if (newer && !known) continue; // deleted since
      rows.set(row.job_id, newer && known ? merged(row, known) : merged(known, row));
    }
    for (const oldest of rows.keys()) {
      if (rows.size <= MOST) break;
      rows.delete(oldest);
      told.delete(oldest);
    }
  }

  /** Of the topic `jobs`; the ids of those that changed, and of those that are gone. */
  function hear(events: LiveEvent[]): { changed: JobRow[]; deleted: string[] } {
    const changed = events.filter((event) => event.type === "job") as unknown as JobRow[];
    const deleted = events.filter((event) => event.type === "deleted").map((event) => String(event.job_id));
    messages += 1;
    keep(changed);
    for (const id of deleted) rows.delete(id);
    for (const id of [...changed.map((row) => row.job_id), ...deleted]) told.set(id, messages);
    return { changed, deleted };
  }

  return { rows, keep, hear, now: () => messages, row: (id: string) => rows.get(id) };
});
