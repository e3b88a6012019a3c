import { afterEach, expect, test, vi } from "vitest";
import { nextTick } from "vue";
import { draw } from "@/components/testing";
import { useSession } from "@/stores/session";
import JobCancelling from "./JobCancelling.vue";

vi.hoisted(() => vi.useFakeTimers({ toFake: ["Date"] })); // the page's clock begins now, and no second passes while it is drawn

afterEach(() => {
  document.body.innerHTML = "";
});

const job = (until: number) => ({
  job_id: "job-a",
  name: "a",
  status: "cancelling",
  reason: { code: "waiting_for_step", params: { until, grace_s: 40, left_s: 40 } },
});

test("it says what it waits for and how long that may take from now, not from when it was asked", async () => {
  const { drawn } = await draw(JobCancelling, { job: job(Date.now() / 1000 + 30) });
  expect(drawn.text()).toMatch(/Being cancelled.*30 s/);
});

test("who may only read cannot force-kill", async () => {
  const { drawn, pinia } = await draw(JobCancelling, { job: job(0) });
  expect(drawn.find('[data-action="force-kill-now"]').exists()).toBe(false);
  useSession(pinia).who = { name: "ann", role: "user", scopes: ["read", "write"], expires_at: null, csrf: "x" };
  await nextTick();
  expect(drawn.find('[data-action="force-kill-now"]').exists()).toBe(true);
});

test("it is read aloud when it waits for something else, not each time the clock ticks", async () => {
  const until = Date.now() / 1000 + 30;
  const { drawn } = await draw(JobCancelling, { job: job(until) });
  const aloud = () => drawn.find('[role="status"]').text();
  const before = aloud();
  expect(before).toContain("30 s");
  const reason = (code: string, left: number) => ({ ...job(until), reason: { code, params: { until, left_s: left } } });
  await drawn.setProps({ job: reason("waiting_for_step", 21.5) }); // as the server tells it again
  expect(aloud()).toBe(before);
  await drawn.setProps({ job: reason("waiting_for_processes", 0) });
  expect(aloud()).toContain("last processes");
});
