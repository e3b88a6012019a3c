// R5, R37: what is on the first page, what the tab says also when nobody looks, and what is said when nothing comes.
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, visit } from "./browser";
import { until, Yard } from "./yard";

const PYTHON = resolve(__dirname, "../../.venv/bin/python");
const STUBBORN = `trap '' TERM; echo ready; while :; do sleep 1; done`;
let yard: Yard;
let browser: Browser;

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

/** The server is away meanwhile. */
async function submittedLastYear(job: string): Promise<void> {
  await yard.kill();
  const program = `import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as database:
    sql = "UPDATE training_jobs SET submitted_at = '2025' || substr(submitted_at, 5) WHERE uuid = ?"
    assert database.execute(sql, (sys.argv[2],)).rowcount == 1`;
  execFileSync(PYTHON, ["-c", program, join(yard.folder, "runyard.db"), job]);
  await yard.start();
}

function look(page: Page, hidden: boolean): Promise<void> {
  return page.evaluate((away) => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => away });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}

test.each([
  ["a desk", { width: 1360, height: 860 }],
  ["a phone", { width: 390, height: 844 }],
])("the top of the page is one line on %s", async (_, viewport) => {
  const { page, wrong } = await visit(browser, yard, "/now", { viewport });
  await page.locator('[data-state="live"]').waitFor();
  expect((await page.locator("header.top").boundingBox())!.height).toBeLessThan(50);
  expect(wrong).toEqual([]);
  await page.context().close();
});

const icon = (page: Page) => page.locator('link[rel="icon"]').getAttribute("href");

test("a training of last year that fails tonight needs you, with what to do beside it; dismissed it comes back when it fails again", async () => {
  const job = await yard.submit({ name: "long-training", command: "exit 3", max_retries: 0 });
  await yard.reach(job, "failed");
  await submittedLastYear(job);
  expect((await yard.ask("GET", `/jobs/${job}`)).submitted_at).toContain("2025-");
  const { page, wrong } = await visit(browser, yard, "/now");
  const need = page.locator("section", { has: page.locator("#needs") }).locator("li", { hasText: "long-training" });
  await need.waitFor();
  expect(await page.getByText("0 completed, 1 failed, 0 cancelled").count()).toBe(1);
  await need.getByRole("button", { name: "Clone: long-training" }).click();
  await page.getByRole("dialog").getByText("Clone of long-training").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await need.getByRole("button", { name: "Dismiss: long-training" }).click();
  await need.waitFor({ state: "detached" });
  await yard.ask("POST", `/jobs/${job}/retry`);
  await need.waitFor();
  await need.getByRole("button", { name: "Retry: long-training" }).click();
  await until("it ran a third time", async () => (await yard.ask("GET", `/jobs/${job}`)).attempt_number === 3);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("every page has a title of its own, in the reader's language", async () => {
  const { page, wrong } = await visit(browser, yard, "/queue");
  for (const [path, title] of Object.entries({ queue: "Queue", alerts: "Alerts", machines: "Machines", settings: "Settings", "nothing-here": "There is no such page" })) {
    await page.goto(`${yard.url}/${path}`);
    await until(title, async () => (await page.title()) === `${title} - Runyard`);
  }
  await page.goto(`${yard.url}/queue`);
  await page.getByRole("button", { name: "中文" }).click();
  await until("in Chinese", async () => (await page.title()) === "队列 - Runyard");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("title and icon tell how it goes, also while nobody looks", async () => {
  const job = await yard.submit({ name: "titled", command: "sleep 600" });
  await yard.reach(job, "running");
  const { page, wrong } = await visit(browser, yard, "/jobs");
  await until("how many run", async () => (await page.title()) === "1 running - Jobs - Runyard");
  const counted = await page.context().newPage();
  await counted.goto(`${yard.url}/now`);
  await until("how many run", async () => (await counted.title()) === "1 running - Now - Runyard");
  await page.goto(`${yard.url}/jobs/${job}`);
  await until("the job", async () => (await page.title()) === "▶ titled - Runyard");
  await page.locator('[data-state="live"]').waitFor();
  const before = await icon(page);
  expect(before).toContain("data:image/svg+xml");
  for (const tab of [page, counted]) await look(tab, true);
  await page.locator('[data-state="paused"]').waitFor();
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  await until("the end is in the title", async () => (await page.title()) === "⊘ titled - Runyard");
  expect(await icon(page)).not.toBe(before);
  await until("nothing runs", async () => (await counted.title()) === "Now - Runyard");
  expect(await page.locator('[data-state="paused"]').count()).toBe(1);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a hidden tab tells of the end of a job of mine when it was asked to", async () => {
  const job = await yard.submit({ name: "told-of", command: "sleep 600" });
  await yard.reach(job, "running");
  const { page, wrong } = await visit(browser, yard, "/queue");
  await page.addInitScript(() => {
    (window as any).told = [];
    (window as any).Notification = class {
      static permission = "granted";
      constructor(text: string) {
        (window as any).told.push(text);
      }
    };
    localStorage.setItem("runyard.telling", "on");
  });
  const asked = page.waitForResponse((response) => /\/jobs\?.*owner=/.test(response.url())); // which of mine live
  await page.reload();
  await (await asked).finished();
  await page.locator('[data-state="live"]').waitFor();
  await look(page, true);
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  await until("it was told", async () => (await page.evaluate(() => (window as any).told)).includes("told-of: cancelled"));
  await look(page, false);
  await page.locator('[data-state="live"]').waitFor();
  expect(await page.evaluate(() => (window as any).told)).toEqual(["told-of: cancelled"]);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("the grace of a job that is being cancelled falls in the list and on the first page", async () => {
  const job = await yard.submit({ name: "stubborn", command: STUBBORN, grace_s: 240 });
  await yard.says(job, "ready");
  const { page, wrong } = await visit(browser, yard, "/jobs");
  await yard.ask("POST", `/jobs/${job}/cancel`);
  for (const path of ["/jobs", "/now"]) {
    await page.goto(yard.url + path);
    const row = page.locator(`[data-job="${job}"]`);
    const left = async () => Number(/(\d+) s of grace left/.exec(await row.innerText())?.[1] ?? NaN);
    const first = await until("the grace is told", async () => (await left()) || null);
    await until("it falls by more than a second", async () => (await left()) < first - 1);
  }
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("what cannot be loaded is said, with a way to try again", async () => {
  const { page, wrong } = await visit(browser, yard, "/settings");
  await page.routeWebSocket(/monitor\/ws/, (socket) => socket.close());
  await page.route("**/monitor/status", (route) => route.fulfill({ status: 500, contentType: "application/json", body: JSON.stringify({ code: "internal", message: "It broke." }) }));
  for (const path of ["/now", "/machines"]) {
    await page.goto(yard.url + path);
    await page.getByRole("alert").getByText("It broke.").waitFor();
  }
  await page.unroute("**/monitor/status");
  // Without a link it also asks by itself now and then.
  await page.getByRole("button", { name: "Try again" }).click({ timeout: 2000 }).catch(() => undefined);
  await page.locator("main .card", { hasText: "CPU" }).waitFor();
  await page.getByRole("alert").waitFor({ state: "detached" });
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("what takes long is said, with a way to ask again", async () => {
  const { page, wrong } = await visit(browser, yard, "/settings");
  let silent = true;
  await page.route("**/training/alerts?*", (route) => (silent ? undefined : route.continue()));
  await page.goto(`${yard.url}/alerts`);
  await page.getByText("This takes longer than usual.").waitFor();
  await page.locator('[data-state="live"]').waitFor();
  silent = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("These checks watch every running job").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("the form for a new job leaves the address when it is closed; the total falls with a deleted job", async () => {
  const job = await yard.submit({ name: "to-be-deleted", command: "true" });
  await yard.reach(job, "completed");
  const { page, wrong } = await visit(browser, yard, "/jobs?new&status=completed");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await until("the address is clean", () => page.url().endsWith("/jobs?status=completed"));
  await page.goto(`${yard.url}/jobs`);
  await page.locator('[data-state="live"]').waitFor();
  await page.locator(`[data-job="${job}"]`).waitFor();
  const total = async () => Number(/\d+/.exec(await page.getByRole("heading", { level: 1 }).innerText())?.[0]);
  const before = await total();
  await yard.ask("DELETE", `/jobs/${job}`);
  await until("one less", async () => (await total()) === before - 1);
  expect(wrong).toEqual([]);
  await page.context().close();
});
