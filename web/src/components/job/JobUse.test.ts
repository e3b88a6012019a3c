import { flushPromises } from "@vue/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { api } from "@/api/client";
import { draw } from "@/components/testing";
import JobUse from "./JobUse.vue";

const points = (...values: number[]) => ({ steps: values.map(() => null), times: values.map((_, index) => index), values });
const JOB = { job_id: "job-a", status: "completed", cpu_cores: 4, memory_gb: 8, gpu_count: 2, attempt: { gpus: [{}, {}] } };

afterEach(() => {
  vi.restoreAllMocks();
  document.body.innerHTML = "";
});

async function drawn(job: object, answers: Record<string, unknown>) {
  vi.spyOn(api, "GET").mockImplementation((async (path: string) => ({
    data: answers[path.split("/").at(-1)!] ?? answers.now,
    response: new Response(),
  })) as unknown as typeof api.GET);
  const { drawn } = await draw(JobUse, { job });
  await flushPromises();
  return drawn;
}

test("of an ended job the most it used is told, with units and the number of GPUs", async () => {
  const found = await drawn(JOB, { metrics: { series: { "system.cpu_percent": points(100, 320), "gpu.util": points(5, 88) } } });
  expect(found.text()).toContain("Used at most");
  expect(found.text()).toContain("3.20 / 4 cores");
  expect(found.text()).toContain("88 % of 2 GPUs");
  expect(found.text()).not.toContain("Nothing was measured");
});

test("an ended job of which nothing was measured is not told to be measured later", async () => {
  const found = await drawn(JOB, { metrics: { series: {} } });
  expect(found.text()).toContain("Nothing was measured: it was over too soon.");
});

test("of a running job what it uses now is told", async () => {
  const use = { cpu_cores: 1.5, cpu_cores_given: 4, memory_gb: 9, memory_gb_given: 8, gpu_util: null, gpu_memory_percent: null };
  const found = await drawn({ ...JOB, status: "running" }, { now: { use } });
  expect(found.text()).toContain("1.50 / 4 cores");
  expect(found.find(".bad").exists()).toBe(true);
});
