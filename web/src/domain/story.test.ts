import { expect, test } from "vitest";
import { type Chapter, changesOf, planOf } from "./story";

const chapter = (code: string, more: Partial<Chapter> = {}): Chapter =>
  ({
    id: 1,
    code,
    at: "2026-01-01T00:00:00Z",
    actor: "a",
    attempt: 1,
    params: {},
    cause: null,
    action: null,
    changes: [],
    lines: [],
    end: null,
    exit_code: null,
    signal: null,
    ...more,
  }) as Chapter;

test("a plan is told by its reason where it has one", () => {
  const reason = { code: "not_retryable", params: { category: "import" } };
  expect(planOf(chapter("job_failed", { action: { code: "give_up", params: { reason } } }))).toEqual(reason);
  expect(planOf(chapter("job_failed", { action: { code: "retry_same", params: {} } }))).toEqual({ code: "retry_same", params: {} });
  expect(planOf(chapter("job_failed"))).toBeNull();
});

test("changes are shown with what was before", () => {
  expect(
    changesOf([
      { name: "--batch-size", before: 16, after: 8 },
      { name: "X", before: null, after: { a: 1 } },
    ]),
  ).toEqual([
    { name: "--batch-size", before: "16", after: "8" },
    { name: "X", before: "–", after: '{"a":1}' },
  ]);
});
