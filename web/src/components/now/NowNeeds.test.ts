import { afterEach, expect, test } from "vitest";
import { nextTick } from "vue";
import { draw } from "@/components/testing";
import { useSession } from "@/stores/session";
import NowNeeds from "./NowNeeds.vue";

afterEach(() => {
  document.body.innerHTML = "";
});

const failed = (id: string) => ({
  job_id: id,
  name: id,
  status: "failed" as const,
  reason: { code: "exit_code", params: { code: 3 } },
  completed_at: new Date().toISOString(),
});
const warning = {
  id: 7,
  level: "warning",
  code: "idle_gpu",
  params: { seconds: 600, util_percent: 3 },
  job_id: "job-w",
  status: "open",
  opened_at: new Date().toISOString(),
};

async function needs(props: object, role: "user" | "viewer") {
  const { drawn, pinia } = await draw(NowNeeds, { alerts: [], failed: [], ...props });
  useSession(pinia).who = { name: "ann", role, scopes: [], expires_at: null, csrf: "x" };
  await nextTick();
  return drawn;
}

test("a failed job can be tried again or cloned where it is shown", async () => {
  const drawn = await needs({ failed: [failed("job-a")] }, "user");
  expect(drawn.find('[data-action="retry"]').exists()).toBe(true);
  await drawn.find('[data-action="clone"]').trigger("click");
  expect(drawn.emitted("clone")?.[0]).toMatchObject([{ job_id: "job-a" }]);
});

test("who may only read sees the log and nothing that would be refused", async () => {
  const drawn = await needs({ failed: [failed("job-a")], alerts: [warning] }, "viewer");
  expect(drawn.text()).toContain("Logs");
  expect(drawn.findAll("[data-action]")).toHaveLength(0);
  expect(drawn.text()).not.toContain("Got it");
});

test("warnings are shown too, and what is too much is counted and led to", async () => {
  const drawn = await needs({ failed: Array.from({ length: 10 }, (_, n) => failed(`job-${n}`)), alerts: [warning] }, "user");
  expect(drawn.findAll("li")).toHaveLength(9);
  expect(drawn.text()).toContain("Got it");
  expect(drawn.find('a[href="/jobs?status=failed"]').text()).toBe("2 more failed");
});
