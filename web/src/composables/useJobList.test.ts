// R37: the list behind a filter is live, and nothing in it moves while somebody points at it.
import { flushPromises } from "@vue/test-utils";
import { createPinia, setActivePinia } from "pinia";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { effectScope, nextTick, reactive, type EffectScope } from "vue";
import { api } from "@/api/client";
import type { TopicHandler } from "@/api/live";
import { useLink } from "@/stores/link";
import { useJobList } from "./useJobList";

const route = reactive({ query: {} as Record<string, string> });
vi.mock("vue-router", () => ({ useRoute: () => route, useRouter: () => ({ replace: vi.fn() }), createRouter: vi.fn(), createWebHistory: vi.fn() }));

let scope: EffectScope;
let list: ReturnType<typeof useJobList>;
let handler: TopicHandler;
let asked: number;
let answer: { items: object[]; next?: string };

/** `at` is the day on which it was submitted. */
const job = (id: string, at: number, status = "running", retries = 0) => ({ job_id: id, name: id, status, retry_count: retries, owner: "ann", job_type: "single", submitted_at: `2026-01-${String(at).padStart(2, "0")}T00:00:00Z` });
const tell = (...jobs: object[]) => handler.events(jobs.map((one) => ({ type: "job", ...one })) as never);

async function open(query: Record<string, string>, items: object[], next?: string): Promise<void> {
  route.query = query;
  answer = { items, next };
  scope = effectScope();
  list = scope.run(useJobList)!;
  await flushPromises();
}

beforeEach(() => {
  vi.useFakeTimers();
  setActivePinia(createPinia());
  asked = 0;
  vi.spyOn(useLink(), "subscribe").mockImplementation((_, given) => {
    handler = given;
    return () => undefined;
  });
  vi.spyOn(api, "GET").mockImplementation((async () => {
    asked += 1;
    const headers: Record<string, string> = { "X-Total-Count": String(answer.items.length) };
    if (answer.next) headers["X-Next-Cursor"] = answer.next;
    return { data: answer.items, response: new Response(null, { headers }) };
  }) as unknown as typeof api.GET);
});

afterEach(() => {
  scope.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("a job that was submitted earlier and starts now comes into the list of running ones, at its place", async () => {
  await open({ status: "running" }, [job("c", 3), job("a", 1)]);
  tell(job("b", 2), job("w", 4, "pending"));
  expect(list.ids.value).toEqual(["c", "b", "a"]);
  expect(list.total.value).toBe(3);
  tell(job("w", 4), job("r", 1, "running", 2));
  expect(list.ids.value).toEqual(["w", "c", "b", "r", "a"]);
});

test("while somebody points at the list it waits behind the pill", async () => {
  await open({ status: "running" }, [job("c", 3), job("a", 1)]);
  list.reading.value = true;
  await nextTick();
  tell(job("b", 2, "running", 1));
  expect(list.ids.value).toEqual(["c", "a"]);
  expect(list.fresh.value).toEqual(["b"]);
  list.reading.value = false;
  await nextTick();
  expect(list.ids.value).toEqual(["c", "b", "a"]);
});

test("what stands on a page that nobody asked for is not shown out of its order", async () => {
  await open({}, [job("c", 3), job("b", 2)], "more");
  tell(job("a", 1));
  expect(list.ids.value).toEqual(["c", "b"]);
  expect(list.total.value).toBe(2);
});

test("what only the server can judge is asked once for each status of a job", async () => {
  await open({ q: "b" }, [job("bc", 3)]);
  answer = { items: [job("bc", 3), job("b", 2)] };
  tell(job("b", 2), job("x", 1));
  tell(job("x", 1));
  await vi.advanceTimersByTimeAsync(1500);
  expect(list.ids.value).toEqual(["bc", "b"]);
  expect(asked).toBe(2);
  tell(job("x", 1), job("b", 2));
  await vi.advanceTimersByTimeAsync(1500);
  expect(asked).toBe(2);
  tell(job("x", 1, "failed"));
  await vi.advanceTimersByTimeAsync(1500);
  expect(asked).toBe(3);
});

test("nothing is asked anew, and nothing moves, until the pointer has left", async () => {
  await open({ q: "b" }, [job("bc", 3), job("ba", 1)]);
  list.reading.value = true;
  await nextTick();
  answer = { items: [job("bd", 4), job("bc", 3), job("b", 2), job("ba", 1)] };
  tell(job("b", 2));
  await vi.advanceTimersByTimeAsync(1500);
  expect(asked).toBe(1);
  handler.reload(); // the link was away: now it must be asked
  await flushPromises();
  expect(list.ids.value).toEqual(["bc", "ba"]);
  expect(list.fresh.value).toEqual(["bd", "b"]);
  list.reading.value = false;
  await nextTick();
  await flushPromises();
  expect(list.ids.value).toEqual(["bd", "bc", "b", "ba"]);
  expect(list.fresh.value).toEqual([]);
});
