// Why a job is as it is, at this moment.
import { moment } from "./duration";
import type { Status } from "./jobState";
import type { Coded } from "./wording";

const WAITING: readonly Status[] = ["pending", "retrying"];
const WITH_GRACE = ["waiting_for_step", "waiting_for_services"];

/** What is left of the grace ticks here: the server told it once. As the server's own cancel_reasons.as_seen. */
export function ticking(reason: Coded | null | undefined, now: () => number): Coded | null {
  if (!reason || reason.params?.left_s == null) return reason ?? null;
  const until = moment(reason.params.until);
  if (until === null) return reason;
  const left = Math.max(0, (until - now()) / 1000);
  const over = left <= 0 && WITH_GRACE.includes(reason.code ?? "");
  return { code: over ? "waiting_for_processes" : reason.code, params: { ...reason.params, left_s: left } };
}

/** What it waits for counts only while it waits. `now` is asked only where something ticks. */
export function whyOf(job: { status: Status; wait?: Coded | null; reason?: Coded | null }, now: () => number): Coded | null {
  return ticking((WAITING.includes(job.status) ? job.wait : null) ?? job.reason, now);
}
