// R37: what ended today is found by when it ended, and nothing that happens while it is asked for is lost.
import { flushPromises } from "@vue/test-utils";
import { createPinia, setActivePinia } from "pinia";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { effectScope, type EffectScope } from "vue";
import { api } from "@/api/client";
import type { TopicHandler } from "@/api/live";
import { useLink } from "@/stores/link";
import { useNowPage } from "./useNowPage";

type Query = { status?: string[]; since?: string; ended_since?: string; sort?: string };
let scope: EffectScope;
let page: ReturnType<typeof useNowPage>;
let handler: TopicHandler;
let asked: Query[];
let answer: (query: Query) => { items: object[]; total?: number };

const job = (id: string, status: string) => ({ job_id: id, name: id, status });

function open(): void {
  scope = effectScope();
  page = scope.run(useNowPage)!;
}

beforeEach(() => {
  setActivePinia(createPinia());
  asked = [];
  answer = () => ({ items: [] });
  vi.spyOn(useLink(), "subscribe").mockImplementation((_, given) => {
    handler = given;
    return () => undefined;
  });
  vi.spyOn(api, "GET").mockImplementation((async (path: string, { params }: any) => {
    if (path.endsWith("/queue/status")) return { data: { waiting: [] } };
    asked.push(params.query);
    const { items, total } = answer(params.query);
    return { data: items, response: new Response(null, { headers: { "X-Total-Count": String(total ?? items.length) } }) };
  }) as unknown as typeof api.GET);
});

afterEach(() => {
  scope.stop();
  vi.restoreAllMocks();
});

test("by when they ended, the newest first, however long ago they were submitted", async () => {
  answer = (query) => ({ items: query.ended_since ? [job("old", "failed")] : [] });
  open();
  await flushPromises();
  const day = asked.find((query) => query.ended_since);
  expect(day).toMatchObject({ sort: "-ended" });
  expect(day?.since).toBeUndefined();
  expect(Date.now() - Date.parse(day!.ended_since!)).toBeLessThan(86_500_000);
  expect(page.endedRows.value.map((row) => row.job_id)).toEqual(["old"]);
});

test("a failed one is not lost behind many that ended later, and how many are not shown is known", async () => {
  answer = (query) => {
    if (!query.ended_since) return { items: [job("r", "running")], total: 70 };
    return query.status ? { items: [job("bad", "failed")] } : { items: [job("good", "completed")], total: 1000 };
  };
  open();
  await flushPromises();
  expect(page.endedRows.value.map((row) => row.job_id)).toEqual(["good", "bad"]);
  expect(page.beyond.value).toEqual({ active: 69, ended: 998 });
});

test("what is told while the lists are on their way stays", async () => {
  answer = (query) => ({ items: query.ended_since ? [] : [job("ends", "running")] });
  open();
  handler.events([{ type: "job", ...job("ends", "failed") }, { type: "job", ...job("starts", "running") }]);
  await flushPromises();
  expect(page.active.value).toEqual(["starts"]);
  expect(page.endedRows.value.map((row) => row.job_id)).toEqual(["ends"]);
});
