// What attempts before the newest measured: steps that were done again are theirs no more in the run as it stands.
import { shallowRef, watch } from "vue";
import { Problem } from "@/api/problem";
import { seriesOf, type Series } from "@/domain/series";
import { askMetrics } from "./useMetrics";

const POINTS = 500;
const MOST = 8; // the newest of them: more are a tangle

/** By metric; empty unless `wanted`. An attempt that has ended measures no more: each is asked for once. */
export function useEarlierMetrics(jobRef: string, numbers: () => readonly number[], wanted: () => boolean) {
  const earlier = shallowRef<ReadonlyMap<string, readonly Series[]>>(new Map());
  const known = new Map<number, Record<string, Series>>();

  async function fetchAttempt(number: number): Promise<void> {
    if (known.has(number)) return;
    const found = await askMetrics(jobRef, { attempt: number, points: POINTS });
    known.set(number, Object.fromEntries(Object.entries(found).map(([name, points]) => [name, seriesOf(points, number)])));
  }

  function show(): void {
    const found = new Map<string, Series[]>();
    const shown = wanted() ? numbers() : [];
    for (const number of shown) {
      for (const [name, series] of Object.entries(known.get(number) ?? {})) found.set(name, [...(found.get(name) ?? []), series]);
    }
    earlier.value = found;
  }

  async function load(): Promise<void> {
    const asked = wanted() ? numbers().slice(-MOST) : [];
    for (const number of asked) {
      try {
        await fetchAttempt(number);
      } catch (refused) {
        if (!(refused instanceof Problem)) throw refused; // the run as it stands is there without them
      }
    }
    show();
  }

  watch(() => [wanted(), ...numbers()].join(), () => void load(), { immediate: true });
  return earlier;
}
