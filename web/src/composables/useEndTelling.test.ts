// R37: told of the end of a job of mine, also in a hidden tab and over a gap.
import { flushPromises } from "@vue/test-utils";
import { createPinia, setActivePinia } from "pinia";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { effectScope, type EffectScope, nextTick } from "vue";
import { api } from "@/api/client";
import type { TopicHandler } from "@/api/live";
import { Problem } from "@/api/problem";
import { speak } from "@/i18n";
import { useLink } from "@/stores/link";
import { useSession } from "@/stores/session";
import { telling, useEndTelling } from "./useEndTelling";

const told: string[] = [];
let handler: TopicHandler;
let scope: EffectScope;
let answers: Record<string, unknown>;

const row = (id: string, status: string, more: object = {}) => ({
  type: "job",
  job_id: id,
  name: id,
  owner: "ann",
  status,
  reason: null,
  ...more,
});

beforeEach(async () => {
  await speak("en");
  setActivePinia(createPinia());
  told.length = 0;
  answers = {};
  class Shown {
    onclick = null;
    constructor(text: string) {
      told.push(text);
    }
  }
  vi.stubGlobal("Notification", Shown);
  vi.spyOn(api, "GET").mockImplementation((async (path: string, asked: any) => {
    const data = answers[path.endsWith("{ref}") ? asked.params.path.ref : "all"];
    if (!data) throw new Problem(404, { code: "job_not_found" });
    return { data, response: new Response() };
  }) as unknown as typeof api.GET);
  useSession().who = { name: "ann", role: "user", scopes: [], expires_at: null, csrf: "x" };
  vi.spyOn(useLink(), "subscribe").mockImplementation((_, given) => {
    handler = given;
    return () => undefined;
  });
  telling.value = true;
  scope = effectScope();
  scope.run(useEndTelling);
});

afterEach(() => {
  scope.stop();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

test("the end of a job of mine is told once, not that of others, not an old one", () => {
  handler.events([row("mine", "running"), row("theirs", "running", { owner: "bob" }), row("old", "completed")]);
  handler.events([row("mine", "failed"), row("theirs", "failed", { owner: "bob" }), row("mine", "failed")]);
  expect(told).toEqual(["mine: failed"]);
});

test("a hidden tab goes on hearing exactly while it is to tell", async () => {
  expect(handler.staysOn?.()).toBe(true);
  telling.value = false;
  await nextTick();
  expect(handler.staysOn?.()).toBe(false);
  handler.events([row("mine", "running"), row("mine", "completed")]);
  expect(told).toEqual([]);
});

test("what ended in a gap is found out and told; what was never seen alive, or is deleted, is not", async () => {
  answers = { all: [row("quiet", "running"), row("gone", "pending")] };
  handler.reload();
  await flushPromises();
  answers = { all: [], quiet: row("quiet", "completed") };
  handler.reload();
  await flushPromises();
  expect(told).toEqual(["quiet: completed"]);
  handler.reload();
  await flushPromises();
  expect(told).toHaveLength(1);
});

test("without a link a hidden tab asks now and then", async () => {
  answers = { all: [row("quiet", "running")] };
  useLink().state = "lost";
  handler.glance?.();
  await flushPromises();
  answers = { all: [], quiet: row("quiet", "failed") };
  handler.glance?.();
  await flushPromises();
  expect(told).toEqual(["quiet: failed"]);
});
