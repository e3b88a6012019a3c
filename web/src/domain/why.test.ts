import { expect, test, vi } from "vitest";
import { whyOf } from "./why";

const wait = { code: "not_enough", params: { resource: "gpu" } };

test("what a job waited for is forgotten when it waits no more", () => {
  const reason = { code: "exit_code", params: { code: 3 } };
  expect(whyOf({ status: "pending", wait, reason: null }, Date.now)).toEqual(wait);
  expect(whyOf({ status: "retrying", wait, reason }, Date.now)).toEqual(wait);
  expect(whyOf({ status: "running", wait, reason: null }, Date.now)).toBeNull();
  expect(whyOf({ status: "failed", wait, reason }, Date.now)).toEqual(reason);
});

test("the grace falls by the clock, and when it is over the job waits for its last processes", () => {
  const job = { status: "cancelling" as const, reason: { code: "waiting_for_step", params: { until: 1000, left_s: 40, by: "ann" } } };
  expect(whyOf(job, () => 970_000)).toEqual({ code: "waiting_for_step", params: { until: 1000, left_s: 30, by: "ann" } });
  expect(whyOf(job, () => 1_000_500)).toMatchObject({ code: "waiting_for_processes", params: { left_s: 0 } });
  const stuck = { status: "cancelling" as const, reason: { code: "stuck", params: { until: 1000, left_s: 0, processes: [] } } };
  expect(whyOf(stuck, () => 1_000_500)?.code).toBe("stuck");
});

test("the clock is not asked where nothing ticks: such a row is not drawn every second", () => {
  const now = vi.fn(Date.now);
  whyOf({ status: "pending", wait, reason: null }, now);
  whyOf({ status: "running", reason: null }, now);
  expect(now).not.toHaveBeenCalled();
});
