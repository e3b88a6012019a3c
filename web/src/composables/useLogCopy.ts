// Lines of a log as plain text on the clipboard: the marked ones, or those around the place that is looked at.
import { ref } from "vue";
import { withoutAnsi } from "@/domain/ansi";
import { copyText } from "./copyText";
import { complain } from "./useJobActions";
import type { OpenLog } from "./useLog";

const MOST = 10_000;
const SHOWN = 200;

export function useLogCopy(log: OpenLog) {
  const copied = ref(false);

  async function copy(marked: [number, number] | null, top: number): Promise<void> {
    const [from, to] = marked ?? [top, top + SHOWN - 1];
    try {
      const page = await log.load({ from, limit: Math.min(MOST, to - from + 1) });
      await copyText(page.logs.map(withoutAnsi).join("\n"));
    } catch (problem) {
      return complain(problem);
    }
    copied.value = true;
    setTimeout(() => (copied.value = false), 1500);
  }

  return { copy, copied };
}
