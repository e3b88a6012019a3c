// Roles and events are codes of the server: a Chinese page says them in Chinese.
import { flushPromises } from "@vue/test-utils";
import { afterEach, expect, test, vi } from "vitest";
import { api } from "@/api/client";
import { draw } from "@/components/testing";
import KeyList from "./KeyList.vue";
import TargetList from "./TargetList.vue";

const AT = new Date().toISOString();
const ANSWERS: Record<string, object[]> = {
  "/api/v1/training/keys": [
    { key_id: 1, name: "robot", role: "viewer", prefix: "ry_abc", created_at: AT, last_used_at: null, expires_at: null, local: false },
  ],
  "/api/v1/training/notifications": [
    { id: 1, name: "hook", type: "webhook", url: "https://host/a", events: ["failed", "alert"], enabled: true },
  ],
  "/api/v1/training/notifications/deliveries": [
    { id: "d", created_at: AT, event: "repaired", job_id: null, status: "sent", tries: 1, error: null },
  ],
};

afterEach(() => {
  vi.restoreAllMocks();
  document.body.innerHTML = "";
});

function answer(): void {
  vi.spyOn(api, "GET").mockImplementation((async (path: string) => ({
    data: ANSWERS[path],
    response: new Response(),
  })) as unknown as typeof api.GET);
}

test("the role of a key", async () => {
  answer();
  const { drawn } = await draw(KeyList, {}, "zh");
  await flushPromises();
  expect(drawn.find("tbody").text()).toContain("viewer: 只读");
});

test("what a target is told, and what was sent", async () => {
  answer();
  const { drawn } = await draw(TargetList, {}, "zh");
  await flushPromises();
  expect(drawn.find(".target").text()).toContain("失败, 告警");
  expect(drawn.find("#deliveries").element.parentElement!.textContent).toContain("已修复");
});
