import { flushPromises } from "@vue/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { defineComponent } from "vue";
import { api } from "@/api/client";
import { draw } from "@/components/testing";
import { useLink } from "@/stores/link";
import { useMetricMarks } from "./useMetricMarks";

afterEach(() => void vi.restoreAllMocks());

const ALERT = {
  level: "error",
  status: "closed",
  opened_at: "2026-01-01T00:05:00Z",
  closed_at: "2026-01-01T00:06:00Z",
  seen_at: "2026-01-01T00:05:30Z",
  params: { metric: "loss", bad_step: 250, step: 260 },
  evidence: { series: { loss: { steps: [249, 250], times: [1767225899, 1767225900] } } },
};

async function marksOf(alerts: object[]) {
  vi.spyOn(api, "GET").mockImplementation((async () => ({ data: alerts, response: new Response() })) as unknown as typeof api.GET);
  let marks!: ReturnType<typeof useMetricMarks>;
  const attempts = [
    { number: 1, started_at: "2026-01-01T00:00:00Z" },
    { number: 2, started_at: "2026-01-01T00:10:00Z" },
  ];
  await draw(
    defineComponent({
      setup() {
        vi.spyOn(useLink(), "subscribe").mockImplementation((_, handler) => (handler.reload(), () => undefined));
        marks = useMetricMarks("job-a", () => attempts as never);
        return () => null;
      },
    }),
    {},
  );
  await flushPromises();
  return marks;
}

test("a trouble has the step it began with, and the time of that step", async () => {
  const { troubles } = await marksOf([ALERT]);
  expect(troubles.value).toEqual([{ from: 1767225900, to: Date.parse(ALERT.closed_at) / 1000, step: 250, bad: true, names: ["loss"] }]);
});

test("one without a step has none, and is where it was opened", async () => {
  const { troubles } = await marksOf([{ ...ALERT, params: {}, evidence: {}, level: "warning" }]);
  expect(troubles.value).toMatchObject([{ from: Date.parse(ALERT.opened_at) / 1000, step: null, bad: false, names: [] }]);
});

test("every attempt but the first is a mark, and relative time begins with the first", async () => {
  const { moments, origin } = await marksOf([]);
  expect(moments.value.map((one) => one.at)).toEqual([Date.parse("2026-01-01T00:10:00Z") / 1000]);
  expect(origin.value).toBe(Date.parse("2026-01-01T00:00:00Z") / 1000);
});
