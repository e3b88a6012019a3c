// Which columns the list of jobs has and how high its rows are, as this person left it.
import { computed } from "vue";
import { useStored } from "./useStored";

export const COLUMNS = ["name", "type", "resources", "status", "progress", "metric", "time", "actions"] as const;
export type Column = (typeof COLUMNS)[number];
export const OPTIONAL: readonly Column[] = ["type", "resources", "progress", "metric", "time"];

const hidden = useStored<string[]>("runyard.jobs.hidden", []);
const dense = useStored("runyard.jobs.dense", false);

export function useTableLook() {
  const shown = computed<ReadonlySet<Column>>(
    () => new Set(COLUMNS.filter((one) => !OPTIONAL.includes(one) || !hidden.value.includes(one))),
  );

  function show(column: Column, on: boolean): void {
    hidden.value = on ? hidden.value.filter((one) => one !== column) : [...hidden.value, column];
  }

  return { shown, dense, show };
}
