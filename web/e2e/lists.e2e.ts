// Long lists, the way back to them, what a row can do, and the ranks of a distributed job.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openBrowser, visit } from "./browser";
import { until, Yard } from "./yard";

let yard: Yard;
let browser: Browser;

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start(), openBrowser()]);
  const jobs = Array.from({ length: 120 }, (_, n) => ({ name: `long-${n}`, command: "true", hold: true, cpu_cores: 0.1, memory_gb: 0.1, gpu_count: 0 }));
  await yard.ask("POST", "/jobs/batch", { jobs });
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

test("going back finds the same rows at the same place, and keys lead along the list", async () => {
  const { page, wrong } = await visit(browser, yard, "/jobs?q=long");
  await page.getByRole("button", { name: "Load more" }).click();
  await until("two pages", async () => (await page.locator("[data-job]").count()) === 100);
  const row = page.locator("[data-job]").nth(80);
  const [job, next] = [await row.getAttribute("data-job"), await page.locator("[data-job]").nth(81).getAttribute("data-job")];
  await row.scrollIntoViewIfNeeded();
  await until("it was scrolled", () => page.evaluate(() => scrollY > 2000));
  const before = await page.evaluate(() => scrollY);
  await row.getByRole("link").first().click();
  await page.waitForURL(`**/jobs/${job}`);
  await page.locator('[data-status="pending"]').first().waitFor();
  await page.keyboard.press("]");
  await page.waitForURL(`**/jobs/${next}`);
  await page.keyboard.press("[");
  await page.waitForURL(`**/jobs/${job}`);
  await page.goBack();
  await page.waitForURL(`**/jobs/${next}`);
  await page.goBack();
  await page.waitForURL(`**/jobs/${job}`);
  await page.goBack();
  await page.waitForURL("**/jobs?q=long");
  await until("the same place", () => page.evaluate((was) => Math.abs(scrollY - was) < 60, before));
  expect(await page.locator("[data-job]").count()).toBe(100);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a server that comes back does not shorten the list that is read", async () => {
  const { page, wrong } = await visit(browser, yard, "/jobs?q=long");
  await page.getByRole("button", { name: "Load more" }).click();
  await until("two pages", async () => (await page.locator("[data-job]").count()) === 100);
  const job = await page.locator("[data-job]").nth(70).getAttribute("data-job");
  await yard.kill();
  await page.locator('[data-state="lost"], [data-state="connecting"]').waitFor();
  await yard.start();
  await yard.ask("POST", `/jobs/${job}/cancel`);
  await page.locator('[data-state="live"]').waitFor();
  await page.locator(`[data-job="${job}"] [data-status="cancelled"]`).waitFor();
  expect(await page.locator("[data-job]").count()).toBe(100);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a row gives its command, columns stay as they were left, Ctrl+K finds", async () => {
  const { page, wrong } = await visit(browser, yard, "/jobs?q=long-7", { permissions: ["clipboard-read", "clipboard-write"] });
  const row = page.locator("[data-job]").first();
  await row.getByRole("button", { name: /^More for/ }).click();
  await page.locator('[data-action="copy-cli"]').click();
  await until("the command is in the clipboard", async () => /^runyard (run|submit) .*true/.test(await page.evaluate(() => navigator.clipboard.readText())));
  await page.getByText("Columns", { exact: true }).click();
  await page.getByLabel("Resources").uncheck();
  await page.reload();
  await row.waitFor();
  expect(await page.getByRole("columnheader", { name: "Resources" }).count()).toBe(0);
  const box = await page.locator(".table").evaluate((table) => table.scrollWidth - table.clientWidth);
  expect(box).toBeLessThanOrEqual(0);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("long-77");
  await page.getByRole("option", { name: /long-77/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "long-77" }).waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("R38: every rank has its log and its line in the chart; services have theirs", async () => {
  const report = `import json, os, time
rank = int(os.environ["RANK"])
print(f"I am rank {rank}", flush=True)
with open(os.environ["RUNYARD_METRICS_FILE"], "a") as file:
    for step in range(20):
        file.write(json.dumps({"step": step, "loss": rank + 1 / (step + 1)}) + "\\n")
time.sleep(600)`;
  const service = { name: "board", command: "echo the board is up; exec python3 -m http.server --bind 127.0.0.1 $RUNYARD_PORT_BOARD", port: "auto", health: "tcp" };
  const job = await yard.submit({ name: "gang", job_type: "distributed", distributed: { procs_per_node: 3 }, command: ["python3", "-c", report], services: [service] });
  await yard.reach(job, "running");
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}/logs`);
  await page.getByText("I am rank 0").waitFor();
  const choice = page.locator(".choice select").last();
  await choice.selectOption("rank 2");
  await page.getByText("I am rank 2").waitFor();
  await until("it is in the address", () => page.url().includes("rank=2"));
  await choice.selectOption("service board");
  await page.getByText("the board is up").waitFor();
  await page.goto(`${yard.url}/jobs/${job}/charts`);
  const chart = page.locator('[data-metric="loss loss.rank1 loss.rank2"]');
  await chart.waitFor();
  expect(await chart.getByRole("heading").allInnerTexts()).toEqual([expect.stringContaining("loss"), expect.stringContaining("rank 1"), expect.stringContaining("rank 2")]);
  await page.locator('[data-choice="ranks"]').uncheck();
  await page.locator('[data-metric="loss"]').waitFor();
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  expect(wrong).toEqual([]);
  await page.context().close();
});
