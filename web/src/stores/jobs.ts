// The newest known row of every job on screen. Cells read one job by its id, so that a change
// redraws a cell and not a table.
import { defineStore } from "pinia";
import { shallowReactive } from "vue";
import type { Schemas } from "@/api/client";
import type { LiveEvent } from "@/api/live";

export type JobRow = Partial<Schemas["JobAnswer"]> & Pick<Schemas["JobAnswer"], "job_id" | "name" | "status"> & Record<string, any>;

const MOST = 5000;

export const useJobs = defineStore("jobs", () => {
  const rows = shallowReactive(new Map<string, JobRow>());

  function keep(found: Iterable<JobRow>): void {
    for (const row of found) rows.set(row.job_id, Object.freeze({ ...rows.get(row.job_id), ...row }));
    for (const oldest of rows.keys()) {
      if (rows.size <= MOST) break;
      rows.delete(oldest);
    }
  }

  /** Of the topic `jobs`; the ids of those that changed, and of those that are gone. */
  function hear(events: LiveEvent[]): { changed: JobRow[]; deleted: string[] } {
    const changed = events.filter((event) => event.type === "job") as unknown as JobRow[];
    const deleted = events.filter((event) => event.type === "deleted").map((event) => String(event.job_id));
    keep(changed);
    for (const id of deleted) rows.delete(id);
    return { changed, deleted };
  }

  return { rows, keep, hear, row: (id: string) => rows.get(id) };
});
