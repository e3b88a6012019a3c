import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Problem } from "@/api/problem";
import { draw } from "@/components/testing";
import BaseLoaded from "./BaseLoaded.vue";

beforeEach(() => vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  document.body.innerHTML = "";
});

const WAITS = { loading: true, problem: null, there: false };

test("what takes long is said after eight seconds, with a way to ask again", async () => {
  const { drawn } = await draw(BaseLoaded, WAITS);
  await vi.advanceTimersByTimeAsync(7900);
  expect(drawn.find("button").exists()).toBe(false);
  await vi.advanceTimersByTimeAsync(200);
  expect(drawn.text()).toContain("longer than usual");
  await drawn.find("button").trigger("click");
  expect(drawn.emitted("again")).toHaveLength(1);
  expect(drawn.find("button").exists()).toBe(false);
  await vi.advanceTimersByTimeAsync(8100);
  expect(drawn.find("button").exists()).toBe(true);
});

test("what is there in time says nothing of it, and counts anew the next time", async () => {
  const { drawn } = await draw(BaseLoaded, WAITS);
  await vi.advanceTimersByTimeAsync(7000);
  await drawn.setProps({ loading: false, there: true });
  await vi.advanceTimersByTimeAsync(5000);
  await drawn.setProps({ loading: true, there: false });
  await vi.advanceTimersByTimeAsync(7000);
  expect(drawn.find("button").exists()).toBe(false);
});

test("a problem ends the waiting", async () => {
  const { drawn } = await draw(BaseLoaded, { ...WAITS, problem: new Problem(500, { code: "x", message: "It broke." }) });
  expect(drawn.text()).toContain("It broke.");
  expect(drawn.find('[role="status"]').exists()).toBe(false);
});
