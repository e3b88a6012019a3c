// Finds a text in a whole log: the server looks through what is written, new lines are looked at as they come.
import { computed, ref, shallowRef, watch } from "vue";
import { Problem } from "@/api/problem";
import { withoutAnsi } from "@/domain/ansi";
import type { OpenLog } from "./useLog";

const MOST = 10_000;
const WAIT_MS = 250;

export function useLogFind(log: OpenLog) {
  const wanted = ref("");
  const exact = ref(false); // capitals matter
  const regex = ref(false);
  const numbers = shallowRef<number[]>([]);
  const all = ref(true); // false: there are more than these
  const looking = ref(false);
  const refused = shallowRef<Problem | null>(null);
  const place = ref(-1); // in numbers
  let turn = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;

  /** For the eye: where it is in a line. */
  const pattern = computed(() => {
    if (!wanted.value) return null;
    try {
      return new RegExp(regex.value ? wanted.value : escaped(wanted.value), exact.value ? "g" : "gi");
    } catch {
      return null;
    }
  });
  const current = computed(() => numbers.value[place.value] ?? null);

  async function look(): Promise<void> {
    const mine = (turn += 1);
    numbers.value = [];
    place.value = -1;
    refused.value = null;
    all.value = true;
    looking.value = wanted.value !== "";
    if (!wanted.value) return;
    try {
      const page = await log.load({ grep: wanted.value, regex: regex.value, ignore_case: !exact.value, from: 0, limit: MOST });
      if (mine !== turn) return;
      numbers.value = page.numbers ?? [];
      all.value = page.complete && numbers.value.length < MOST;
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      if (mine === turn) refused.value = problem;
    } finally {
      if (mine === turn) looking.value = false;
    }
  }

  /** To the next one after the row that is looked at at first, then one after the other, round and round. */
  function go(step: 1 | -1, near: number): number | null {
    const { length } = numbers.value;
    if (!length) return null;
    if (place.value < 0) {
      const after = numbers.value.findIndex((number) => number >= near);
      place.value = step > 0 ? Math.max(0, after) : (after < 0 ? length : after || length) - 1;
    } else place.value = (place.value + step + length) % length;
    return current.value;
  }

  log.onLines((from, to) => {
    const test = pattern.value;
    if (!test || looking.value || !all.value) return;
    const found: number[] = [];
    for (let number = from; number < to; number += 1) {
      test.lastIndex = 0;
      if (number > (numbers.value.at(-1) ?? -1) && test.test(withoutAnsi(log.lines.value.text(number) ?? ""))) found.push(number);
    }
    if (found.length) numbers.value = [...numbers.value, ...found];
  });

  watch([wanted, exact, regex, log.attempt], () => {
    clearTimeout(timer);
    timer = setTimeout(() => void look(), WAIT_MS);
  });

  return { wanted, exact, regex, numbers, all, looking, refused, place, current, pattern, go };
}

export type LogFindState = ReturnType<typeof useLogFind>;

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
