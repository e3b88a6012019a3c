import { afterEach, expect, test } from "vitest";
import { nextTick } from "vue";
import { draw } from "@/components/testing";
import { useSystemStore } from "@/stores/system";
import GpuStrip from "./GpuStrip.vue";
import { GPUS, gpu, STATUS } from "./madeUpGpus";

afterEach(() => (document.body.innerHTML = ""));

async function strip(language: "en" | "zh" = "en") {
  const { drawn, pinia } = await draw(GpuStrip, { gpus: GPUS }, language);
  useSystemStore(pinia).status = STATUS;
  await nextTick();
  return { drawn, who: (index: number) => drawn.find(`[data-gpu="${index}"] .who`) };
}

test("only a GPU that a job could be given is called free", async () => {
  const { who } = await strip();
  expect(who(1).text()).toContain("not ours: eve, pid 4711, python");
  expect(who(2).text()).toContain("fenced: it is too hot");
  expect(who(3).text()).toContain("another Runyard server");
  expect([0, 1, 2, 3, 4].filter((index) => /\bfree\b/.test(who(index).text()))).toEqual([4]);
});

test("a job is told by its name, and leads to it", async () => {
  const { who } = await strip();
  expect(who(0).text()).toBe("llama");
  expect(who(0).find("a").attributes("href")).toBe("/jobs/job-a");
});

test("in Chinese too", async () => {
  const { who } = await strip("zh");
  expect(who(4).text()).toBe("空闲");
  expect(who(2).text()).toContain("已隔离");
});

test("load and memory are said, not only drawn; what was not measured counts as nothing", async () => {
  const { drawn } = await strip();
  expect(drawn.find('[data-gpu="0"] [role="img"]').attributes("aria-label")).toBe("GPU 0: memory 51 %, load 93 %");
  await drawn.setProps({ gpus: [gpu(0, { metrics: {} })] });
  expect(drawn.find('[data-gpu="0"] [role="img"]').attributes("aria-label")).toBe("GPU 0: memory 0 %, load 0 %");
});
