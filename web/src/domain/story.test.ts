import { expect, test } from "vitest";
import { changesOf, storyOf } from "./story";

const event = (id: number, code: string, attempt: number | null = null) => ({ id, code, at: `2026-01-01T00:00:0${id}Z`, actor: "a", job_id: "job-a", attempt_id: attempt === null ? null : `job-a.${attempt}`, params: {} });
const failure = (attempt: number) => ({ attempt, category: "gpu_oom", failure_type: "out_of_memory", confidence: 0.9, explanation: null, root: null, plan: null, changes: [] });

test("a failure stands with the event that ended its attempt", () => {
  const story = storyOf([event(1, "job_submitted"), event(2, "job_retrying", 1), event(3, "job_started", 2), event(4, "job_failed", 2)], [failure(1), failure(2)]);
  expect(story.map((entry) => entry.failure?.attempt ?? null)).toEqual([null, 1, null, 2]);
});

test("what other entries say already is left out", () => {
  expect(storyOf([event(1, "resources_released", 1), event(2, "job_completed", 1)], []).map((entry) => entry.code)).toEqual(["job_completed"]);
});

test("changes are shown with what was before", () => {
  const attempt = { changes: [{ name: "--batch-size", before: 16, after: 8 }, { name: "X", before: null, after: { a: 1 } }] } as any;
  expect(changesOf(attempt)).toEqual([
    { name: "--batch-size", before: "16", after: "8" },
    { name: "X", before: "–", after: '{"a":1}' },
  ]);
});
