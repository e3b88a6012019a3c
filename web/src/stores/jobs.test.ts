import { createPinia, setActivePinia } from "pinia";
import { beforeEach, expect, test } from "vitest";
import { useJobs } from "./jobs";

beforeEach(() => setActivePinia(createPinia()));

const row = (status: "pending" | "running", more: object = {}) => ({ job_id: "job-a", name: "a", status, ...more });
const told = (status: "pending" | "running") => [{ type: "job", ...row(status) }];

test("an answer that was given before a message takes nothing back that the message told", () => {
  const jobs = useJobs();
  const asked = jobs.now();
  jobs.hear(told("running"));
  jobs.keep([row("pending", { owner: "ann" })], asked);
  expect(jobs.row("job-a")).toMatchObject({ status: "running", owner: "ann" });
});

test("an answer that was asked for after a message is the newest", () => {
  const jobs = useJobs();
  jobs.hear(told("pending"));
  jobs.keep([row("running")], jobs.now());
  expect(jobs.row("job-a")?.status).toBe("running");
});

test("a job that was deleted meanwhile does not come back with a late answer", () => {
  const jobs = useJobs();
  jobs.keep([row("running")]);
  const asked = jobs.now();
  jobs.hear([{ type: "deleted", job_id: "job-a" }]);
  jobs.keep([row("running")], asked);
  expect(jobs.row("job-a")).toBeUndefined();
});

test("what a job waited for goes when it waits for something else or no more; the same wait keeps its place", () => {
  const jobs = useJobs();
  const wait = { code: "not_enough", params: {}, position: 2, est_start_low: null, est_start_high: null, blockers: [] };
  const reason = (code: string) => ({ code, params: {} });
  const hear = (status: string, code: string | null) =>
    jobs.hear([{ type: "job", job_id: "job-a", name: "a", status, reason: code && reason(code) }]);
  jobs.keep([row("pending", { wait, reason: reason("not_enough") })]);
  hear("pending", "not_enough");
  expect(jobs.row("job-a")?.wait?.position).toBe(2);
  hear("pending", "held");
  expect(jobs.row("job-a")).toMatchObject({ wait: null, reason: { code: "held" } });
  jobs.keep([row("pending", { wait, reason: reason("not_enough") })]);
  hear("running", null);
  expect(jobs.row("job-a")?.wait).toBeNull();
  const asked = jobs.now() - 1;
  jobs.keep([row("pending", { wait })], asked); // an answer from before it ran
  expect(jobs.row("job-a")).toMatchObject({ status: "running", wait: null });
});
