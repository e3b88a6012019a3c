// R5, R37: what people do with jobs all day, in a real browser on a real server with real processes.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openBrowser, visit } from "./browser";
import { until, Yard } from "./yard";

let yard: Yard;
let browser: Browser;

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

test("a job written in the dialog runs, is watched, and its end is shown", async () => {
  const { page, wrong } = await visit(browser, yard, "/jobs");
  await page.click('[data-action="new"]');
  await page.fill('[data-field="command"] textarea, textarea[data-field="command"]', "for i in 1 2 3; do echo line $i; done");
  await page.fill('[data-field="name"] input, input[data-field="name"]', "from-the-browser");
  await page.waitForFunction(() => document.querySelector("#job-yaml") && (document.querySelector("#job-yaml") as HTMLTextAreaElement).value.includes("from-the-browser"));
  await page.getByText("Would start now").waitFor();
  await page.click('[data-action="submit"]');
  await page.waitForURL(/\/jobs\/job-/);
  await page.locator('[data-status="completed"]').first().waitFor();
  await page.getByText("Processes ended").waitFor();
  await page.getByRole("link", { name: "Logs", exact: true }).first().click();
  await page.getByText("line 3").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("what the YAML says is what the form shows, and a wrong field is named before it is sent", async () => {
  const { page, wrong } = await visit(browser, yard, "/jobs?new");
  await page.fill("#job-yaml", "name: both-sides\ncommand: echo hi\ncpu_cores: 1\ncpu_core: 2\n");
  await until("the form follows", () => page.inputValue('[data-field="name"] input, input[data-field="name"]').then((value) => value === "both-sides"));
  await page.getByRole("status").filter({ hasText: "cpu_core" }).waitFor();
  expect(await page.isDisabled('[data-action="submit"]')).toBe(true);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("cancelling is shown honestly, force-kill asks first, the receipt follows", async () => {
  const job = await yard.submit({ name: "stubborn", command: "trap '' TERM; echo deaf; while true; do sleep 0.1; done", grace_s: 300 });
  await yard.says(job, "deaf");
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}`);
  await page.click('[data-action="cancel"]');
  await page.locator(".el-message-box__btns .el-button--primary").click();
  await page.locator(".cancelling", { hasText: "Being cancelled" }).waitFor(); // said aloud once more, out of sight
  await page.click('[data-action="force-kill-now"]');
  await page.locator(".el-message-box__btns .el-button--primary").click();
  await page.locator('[data-status="cancelled"]').first().waitFor();
  await page.getByText("Receipt", { exact: true }).waitFor();
  expect((await yard.ask("GET", `/jobs/${job}`)).status).toBe("cancelled");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a failed job tells why, with the proving line one click away, and is run again", async () => {
  const job = await yard.submit({ name: "breaks", command: ["python3", "-c", "print('begin'); raise KeyError('weights')"], max_retries: 0 });
  await yard.reach(job, "failed");
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}`);
  await page.locator(".failure .proof").first().click();
  await page.waitForURL(/logs\?.*line=/);
  await page.getByText("KeyError: 'weights'").first().waitFor();
  await page.locator('[data-action="retry"]').first().click();
  await until("a second attempt", async () => (await yard.ask("GET", `/jobs/${job}`)).attempt?.number === 2);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("filters live in the URL, rows change by themselves, many are cancelled at once", async () => {
  const held = await Promise.all([1, 2, 3].map((n) => yard.submit({ name: `bulk-${n}`, command: "sleep 600", labels: { group: "bulk" } })));
  for (const job of held) await yard.reach(job, "running"); // between the two statuses it would not be listed
  const { page, wrong } = await visit(browser, yard, "/jobs?status=running,pending&q=bulk");
  for (const job of held) await page.locator(`[data-job="${job}"]`).waitFor();
  await page.locator('[aria-label="Select all on this page"]').check();
  await page.click('[data-action="cancel-many"]');
  await page.locator(".el-message-box__btns .el-button--primary").click();
  for (const job of held) await yard.reach(job, "cancelled");
  await page.goto(`${yard.url}/jobs?status=cancelled&q=bulk`);
  await page.locator('[data-status="cancelled"]').nth(2).waitFor();
  expect(new URL(page.url()).search).toBe("?status=cancelled&q=bulk");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a new job appears in the list without a reload", async () => {
  const { page, wrong } = await visit(browser, yard, "/jobs");
  await page.locator('[data-state="live"]').waitFor();
  const job = await yard.submit({ name: "appears", command: "sleep 600" });
  await page.locator(`[data-job="${job}"] [data-status="running"]`).waitFor();
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  await page.locator(`[data-job="${job}"] [data-status="cancelled"]`).waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});
