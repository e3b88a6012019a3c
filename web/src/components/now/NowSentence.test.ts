import { afterEach, expect, test, vi } from "vitest";
import { draw } from "@/components/testing";
import NowSentence from "./NowSentence.vue";

vi.hoisted(() => vi.useFakeTimers({ toFake: ["Date"] })); // the page's clock begins now

afterEach(() => {
  document.body.innerHTML = "";
});

const status = (counts: object) => ({ counts, running: [{ health: { level: "ok" } }] });
const next = (seconds: number) => ({
  job_id: "a",
  name: "a",
  status: "pending",
  wait: { est_start_low: new Date(Date.now() + seconds * 1000).toISOString() },
});

test("what changes by itself is beside the sentence that is read aloud, not in it", async () => {
  const { drawn } = await draw(NowSentence, { status: status({ running: 1, pending: 2 }), next: next(120), needs: 0 });
  const aloud = () => drawn.find('[aria-live="polite"]').text();
  expect(aloud()).toBe("1 running, all healthy; 2 waiting");
  expect(drawn.text()).toContain("2 m 0 s");
  await drawn.setProps({ next: next(119), status: status({ running: 1, pending: 2 }) });
  expect(aloud()).toBe("1 running, all healthy; 2 waiting");
  expect(drawn.text()).toContain("1 m 59 s");
});
