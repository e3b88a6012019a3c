import { afterEach, expect, test, vi } from "vitest";
import { flushPromises } from "@vue/test-utils";
import { nextTick } from "vue";
import { api } from "@/api/client";
import { draw } from "@/components/testing";
import { useJobs } from "@/stores/jobs";
import { useSession, type Who } from "@/stores/session";
import QueueTable from "./QueueTable.vue";

const JOB = { status: "pending", owner: "ann", priority: "medium", cpu_cores: 8, memory_gb: 32, gpu_count: 2, hold: false, reason: null };
const soon = (minutes: number) => new Date(Date.now() + minutes * 60_000 + 55_000).toISOString();
const WAIT = { code: "max_concurrent", params: { limit: 1 }, position: 2, est_start_low: soon(10), est_start_high: soon(20), blockers: ["job-r", "job-x"] };
const WAITING = [
  { ...JOB, job_id: "job-a", name: "llama", queued_at: new Date().toISOString(), wait: WAIT },
  { ...JOB, job_id: "job-h", name: "mine", hold: true, queued_at: new Date().toISOString(), wait: { code: "held", params: {}, position: null, est_start_low: null, est_start_high: null, blockers: [] } },
];

afterEach(() => {
  document.body.innerHTML = "";
  vi.restoreAllMocks();
});

async function table(role = "user", language: "en" | "zh" = "en") {
  const { drawn, pinia } = await draw(QueueTable, { waiting: WAITING }, language);
  useSession(pinia).who = { name: "ann", role } as Who;
  useJobs(pinia).keep([{ job_id: "job-r", name: "bert", status: "running", progress: 41.6 }]);
  await nextTick();
  return { drawn, cells: (id: string) => drawn.findAll(`[data-job="${id}"] td`).map((cell) => cell.text().replace(/\s+/g, " ")) };
}

test("place, why, behind whom and how far that is, and when it may start", async () => {
  const { drawn, cells } = await table();
  const [place, name, why, start] = cells("job-a");
  expect(place).toBe("2");
  expect(name).toContain("llama");
  expect(why).toContain("behind bert 42 %");
  expect(why).toContain("job-x"); // one that the page does not know is told by its id
  expect(start).toBe("10 m to 20 m");
  expect(drawn.findAll('[data-job="job-a"] .one a').map((link) => link.attributes("href"))).toEqual(["/jobs/job-r", "/jobs/job-x"]);
});

test("a held one has no place and stands behind nobody", async () => {
  const { drawn, cells } = await table();
  expect(cells("job-h")[0]).toBe("–");
  expect(cells("job-h")[2]).not.toContain("behind");
  expect(drawn.find('[aria-label="Release: mine"]').exists()).toBe(true);
});

test("a viewer can change nothing", async () => {
  const { drawn } = await table("viewer");
  expect(drawn.findAll("button")).toHaveLength(0);
  expect(drawn.findAll("select:disabled")).toHaveLength(2);
});

test("another priority is asked for, and the queue looked at again", async () => {
  const post = vi.spyOn(api, "POST").mockResolvedValue({ data: {} } as never);
  const { drawn } = await table();
  await drawn.find('[aria-label="Priority of llama"]').setValue("high");
  await flushPromises();
  expect(post).toHaveBeenCalledWith("/api/v1/training/queue/enqueue/{ref}", { params: { path: { ref: "job-a" }, query: { priority: "high" } } });
  expect(drawn.emitted("changed")).toHaveLength(1);
});

test("in Chinese too", async () => {
  const { cells } = await table("user", "zh");
  expect(cells("job-a")[2]).toContain("前面有 bert 42 %");
});
