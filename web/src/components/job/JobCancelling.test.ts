import { afterEach, expect, test, vi } from "vitest";
import { nextTick } from "vue";
import { draw } from "@/components/testing";
import { useSession } from "@/stores/session";
import JobCancelling from "./JobCancelling.vue";

afterEach(() => {
  document.body.innerHTML = "";
});

const job = (until: number) => ({ job_id: "job-a", name: "a", status: "cancelling", reason: { code: "waiting_for_step", params: { until, grace_s: 40, left_s: 40 } } });

test("it says what it waits for and how long that may take from now, not from when it was asked", async () => {
  const { drawn } = await draw(JobCancelling, { job: job(Date.now() / 1000 + 30) });
  expect(drawn.text()).toMatch(/Being cancelled.*(30|31) s/);
});

test("who may only read cannot force-kill", async () => {
  const { drawn, pinia } = await draw(JobCancelling, { job: job(0) });
  expect(drawn.find('[data-action="force-kill-now"]').exists()).toBe(false);
  useSession(pinia).who = { name: "ann", role: "user", scopes: ["read", "write"], expires_at: null, csrf: "x" };
  await nextTick();
  expect(drawn.find('[data-action="force-kill-now"]').exists()).toBe(true);
  vi.useRealTimers();
});
