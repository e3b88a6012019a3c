// R13: what the server says about a draft is said whole, and in the reader's language.
import { flushPromises } from "@vue/test-utils";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { api } from "@/api/client";
import { draw } from "@/components/testing";
import { useJobs } from "@/stores/jobs";
import JobDraftPreview from "./JobDraftPreview.vue";

const FOUND = { valid: true, problems: [], warnings: [], starts_now: false, placement: null, wait: null, request: null, suggestion: null, job: null, cli: null, yaml: null };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  document.body.innerHTML = "";
});

async function preview(found: object, language: "en" | "zh" = "en") {
  vi.spyOn(api, "POST").mockResolvedValue({ data: { ...FOUND, ...found } } as never);
  const { drawn, pinia } = await draw(JobDraftPreview, { draft: { command: "true" } }, language);
  useJobs(pinia).keep([{ job_id: "job-r", name: "bert", status: "running", progress: 42 }]);
  await vi.advanceTimersByTimeAsync(1000);
  await flushPromises();
  return drawn;
}

const words = (drawn: { text(): string }) => drawn.text().replace(/\s+/g, " ");

test("with room it names the machine and the GPUs", async () => {
  const placement = { node_id: "n", node: "big", executor: "local", gpus: [1, 3] };
  expect(words(await preview({ starts_now: true, placement }))).toContain("Would start now on big, GPU 1, 3");
  expect(words(await preview({ starts_now: true, placement: { ...placement, gpus: [] } }))).toMatch(/Would start now on big$/);
});

test("without room it leads to those that it would wait behind", async () => {
  const blockers = ["job-r", "job-2", "job-3", "job-4", "job-5", "job-6", "job-7"];
  const drawn = await preview({ wait: { code: "max_concurrent", params: { limit: 1 }, position: 3, est_start_low: null, est_start_high: null, blockers } });
  expect(words(drawn)).toContain("behind bert 42 %, job-2, job-3, job-4, job-5 and 2 more");
  expect(drawn.find(".blockers a").attributes("href")).toBe("/jobs/job-r");
});

test("what is wrong is said in Chinese first where the page is Chinese", async () => {
  const problems = [{ field: "cpu_core", code: "unknown_field", message: "There is no field 'cpu_core'.", nearest: null }];
  expect(words(await preview({ valid: false, problems }, "zh"))).toContain("cpu_core 没有这个字段 There is no field 'cpu_core'.");
  expect(words(await preview({ valid: false, problems }))).toContain("cpu_core There is no field 'cpu_core'.");
});
