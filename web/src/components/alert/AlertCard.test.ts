import { afterEach, expect, test } from "vitest";
import { draw } from "@/components/testing";
import AlertCard from "./AlertCard.vue";

const ALERT = {
  ...{
    id: 7,
    key: "k",
    level: "error",
    code: "not_finite",
    params: { metric: "loss", value: "NaN", step: 6 },
    job_id: "job-a",
    attempt_id: null,
    node_id: null,
  },
  ...{ status: "open", times: 3, evidence: {}, opened_at: new Date().toISOString(), acknowledged_by: null },
  actions_taken: [{ action: "checkpoint-and-stop" }, { action: "of-a-newer-server" }],
};

afterEach(() => (document.body.innerHTML = ""));

test("what was done about it is said in the reader's language; what is not known keeps its code", async () => {
  const { drawn } = await draw(AlertCard, { alert: ALERT });
  expect(drawn.text()).toContain("save a checkpoint and stop, of-a-newer-server");
  const chinese = await draw(AlertCard, { alert: ALERT }, "zh");
  expect(chinese.drawn.text()).toContain("保存检查点并停止, of-a-newer-server");
});

test("who may not act sees no button", async () => {
  const { drawn } = await draw(AlertCard, { alert: ALERT });
  expect(drawn.text()).toContain("found 3 times");
  expect(drawn.findAll("button")).toHaveLength(0);
});
