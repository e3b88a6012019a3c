// R37: the logs of other ranks and of services know their end.
import { flushPromises } from "@vue/test-utils";
import { createPinia, setActivePinia } from "pinia";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { effectScope, ref, type EffectScope } from "vue";
import { api } from "@/api/client";
import type { TopicHandler } from "@/api/live";
import { useLink } from "@/stores/link";
import { useLog, type OpenLog } from "./useLog";

let scope: EffectScope;
let topics: Map<string, TopicHandler>;
let asked: any[];
let pieces: string[]; // what is there to be read of a service, piece by piece
let over: boolean;

const PAGE = { logs: [], gaps: [], size: 7, attempt: 1, outline: { resume: 7, total: 0, dropped: [], unfinished: false } };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  setActivePinia(createPinia());
  [topics, asked, pieces, over] = [new Map(), [], [], false];
  vi.spyOn(useLink(), "subscribe").mockImplementation((topic, handler) => {
    topics.set(topic, handler);
    return () => topics.delete(topic);
  });
  vi.spyOn(api, "GET").mockImplementation((async (_: string, { params: { query } }: any) => {
    asked.push(query);
    const data = query.raw ? new TextEncoder().encode(pieces.shift() ?? "").buffer : { ...PAGE, ended: over };
    return { data, response: new Response() };
  }) as unknown as typeof api.GET);
  scope = effectScope();
});

afterEach(() => {
  scope.stop();
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function open(more: object): Promise<OpenLog> {
  const log = scope.run(() => useLog(ref({ job: "job-a", attempt: null, rank: 0, service: "", ...more })))!;
  await flushPromises();
  return log;
}

async function look(): Promise<void> {
  vi.advanceTimersByTime(1500);
  await flushPromises();
}

test("another rank is told by the live link, which says when it ends; nothing is polled", async () => {
  const log = await open({ rank: 3 });
  expect([...topics.keys()]).toEqual(["log:job-a/3:1:7"]);
  await look();
  expect(asked.filter((query) => query.raw)).toEqual([]);
  topics.get("log:job-a/3:1:7")!.events([
    { type: "text", attempt: 1, offset: 7, next_offset: 13, text: "hello\n" },
    { type: "end", status: "completed" },
  ]);
  expect(log.ended.value).toBe(true);
});

test("a service is asked for until it has ended and all was read", async () => {
  pieces = ["one\n"];
  const log = await open({ service: "reward" });
  expect(topics.size).toBe(0);
  await look();
  await look(); // nothing new: asks whether it goes on
  expect(log.ended.value).toBe(false);
  over = true;
  await look(); // it has ended
  pieces = ["its last words\n"];
  await look();
  expect(log.ended.value).toBe(false);
  await look();
  expect(log.ended.value).toBe(true);
  const before = asked.length;
  await look();
  expect(asked.length).toBe(before);
  expect(asked.filter((query) => query.raw).map((query) => query.offset)).toEqual([7, 11, 11, 11, 26]);
});
