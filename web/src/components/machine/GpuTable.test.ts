import { afterEach, expect, test } from "vitest";
import { nextTick } from "vue";
import { draw } from "@/components/testing";
import { useSession, type Who } from "@/stores/session";
import { useSystemStore } from "@/stores/system";
import GpuTable from "./GpuTable.vue";
import { GPUS, gpu, STATUS } from "./madeUpGpus";

afterEach(() => (document.body.innerHTML = ""));

async function table(gpus = GPUS, role = "viewer") {
  const { drawn, pinia } = await draw(GpuTable, { node: "big", gpus });
  useSystemStore(pinia).status = STATUS;
  useSession(pinia).who = { name: "ann", role } as Who;
  await nextTick();
  return { drawn, cell: (index: number, column: number) => drawn.findAll(`[data-gpu="${index}"] td`)[column]! };
}

test("who has each GPU: our job by name, somebody else's process, another server, nobody", async () => {
  const { cell } = await table();
  expect(cell(0, 3).text()).toBe("llama");
  expect(cell(0, 3).find("a").attributes("href")).toBe("/jobs/job-a");
  expect(cell(1, 3).text()).toBe("not ours: eve, pid 4711, python");
  expect(cell(3, 3).text()).toBe("another Runyard server");
  expect(cell(4, 3).text()).toBe("free");
});

test("a fenced GPU says why, and is not called free", async () => {
  const { cell } = await table();
  expect(cell(2, 0).text()).toContain("fenced: it is too hot");
  expect(cell(2, 3).text()).toBe("–");
});

test("trouble of the hardware stands beside its GPU", async () => {
  const { cell } = await table([gpu(0, { metrics: { ecc_errors: 2, xid: 79, throttled: 1, util: 12.4, temperature: 91, power_w: 700 } })]);
  expect(cell(0, 0).text()).toMatch(/2 ECC errors.*Xid 79.*throttled/);
  expect(cell(0, 1).text()).toMatch(/12 %\s*91 °C 700 W/);
});

test("only who may, can fence; a fenced one can be taken back", async () => {
  expect((await table()).drawn.findAll("button")).toHaveLength(0);
  const { drawn } = await table(GPUS, "admin");
  const labels = drawn.findAll("button").map((button) => button.attributes("aria-label"));
  expect(labels).toEqual(["Fence: GPU 0", "Fence: GPU 1", "Unfence: GPU 2", "Fence: GPU 3", "Fence: GPU 4"]);
});
