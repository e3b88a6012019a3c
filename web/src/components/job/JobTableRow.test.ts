import { afterEach, expect, test } from "vitest";
import { nextTick } from "vue";
import { draw } from "@/components/testing";
import { useJobs } from "@/stores/jobs";
import JobTableRow from "./JobTableRow.vue";

const JOB = {
  job_id: "job-a",
  name: "llama",
  status: "running" as const,
  owner: "ann",
  cpu_cores: 8,
  memory_gb: 32,
  gpu_count: 2,
  progress: 63.4,
  job_type: "single",
  submitted_at: new Date().toISOString(),
  started_at: new Date().toISOString(),
  retry_count: 0,
};

afterEach(() => (document.body.innerHTML = ""));

async function row(job: object, language: "en" | "zh" = "en") {
  const { pinia, drawn } = await draw(JobTableRow, { id: "job-a", selected: false, current: false }, language);
  const jobs = useJobs(pinia);
  jobs.keep([{ ...JOB, ...job }]);
  await nextTick();
  return { drawn, jobs };
}

test("a row says name, resources, status, progress and metric", async () => {
  const { drawn } = await row({ main_metric: { name: "loss", direction: "min", last: 0.1234, best: 0.1, points: [3, 2, 1] } });
  expect(drawn.text()).toContain("8C / 32GB / 2GPU");
  expect(drawn.text()).toContain("running");
  expect(drawn.text()).toContain("63 %");
  expect(drawn.text()).toContain("loss 0.1234");
  expect(drawn.find('[role="progressbar"]').attributes("aria-valuenow")).toBe("63");
});

test("a change in the store redraws the row in place", async () => {
  const { drawn, jobs } = await row({});
  const element = drawn.element;
  jobs.hear([{ type: "job", job_id: "job-a", status: "failed", reason: { code: "exit_code", params: { code: 3 } } }]);
  await nextTick();
  expect(drawn.element).toBe(element);
  expect(drawn.find("[data-status]").attributes("data-status")).toBe("failed");
  expect(drawn.text()).toContain("3");
});

test("why a job waits is said in the reader's language", async () => {
  const { drawn } = await row({ status: "pending", wait: { code: "held", params: {} } }, "zh");
  expect(drawn.text()).toContain("等待中");
  expect(drawn.text()).toContain("已挂起");
});

test("trouble of a running job is said instead of nothing", async () => {
  const { drawn } = await row({ health: { level: "warning", code: "idle_gpu", params: { seconds: 600, util_percent: 3 } } });
  expect(drawn.text()).toContain("10 m");
});
