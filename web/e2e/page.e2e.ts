// Language, theme, login, keyboard, and a server that dies and comes back under an open page.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openBrowser, visit } from "./browser";
import { Yard } from "./yard";

let yard: Yard;
let browser: Browser;

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

test("the language is the browser's at first, then the one that was chosen", async () => {
  const { page, wrong } = await visit(browser, yard, "/queue", { locale: "zh-CN" });
  await page.getByRole("heading", { level: 1, name: "队列" }).waitFor();
  await page.getByRole("button", { name: "English" }).click();
  await page.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  expect(await page.locator("html").getAttribute("lang")).toBe("en");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("dark is dark before the first paint, and stays chosen", async () => {
  const { page, wrong } = await visit(browser, yard, "/now", { colorScheme: "light" });
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).click();
  await page.getByRole("button", { name: "Theme: dark" }).waitFor();
  await page.goto(`${yard.url}/jobs`, { waitUntil: "commit" });
  await page.waitForFunction(() => document.documentElement.classList.contains("dark"));
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("nobody sees anything without a key, and the page they wanted comes after the login", async () => {
  const context = await browser.newContext();
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(`${yard.url}/machines`);
  await page.getByLabel("API key").fill("ry_wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByText("This key is not valid.").waitFor();
  await page.getByLabel("API key").fill(yard.key);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "Machines" }).waitFor();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("API key").waitFor();
  await page.goto(`${yard.url}/now`);
  await page.getByLabel("API key").waitFor();
  await context.close();
});

test("keys go to pages, open the help, and are silent while somebody types", async () => {
  const { page, wrong } = await visit(browser, yard, "/now");
  await page.clock.setFixedTime(new Date()); // two keys belong together only when they are pressed within a second
  await page.keyboard.press("g");
  await page.keyboard.press("q");
  await page.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  await page.keyboard.press("?");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("/");
  await page.keyboard.type("gj");
  expect(await page.inputValue("#find")).toBe("gj");
  expect(new URL(page.url()).pathname).toBe("/queue");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a server that is killed and started again is caught up with, without a reload", async () => {
  const job = await yard.submit({ name: "survivor", command: "sleep 600" });
  await yard.reach(job, "running");
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}`);
  await page.locator('[data-status="running"]').first().waitFor();
  await page.locator('[data-state="live"]').waitFor();
  await page.evaluate(() => ((window as any).sameDocument = true));
  await yard.kill();
  await page.locator('[data-state="lost"], [data-state="connecting"]').waitFor();
  await page.getByText(/stale since/).waitFor();
  await yard.start();
  await page.locator('[data-state="live"]').waitFor();
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  await page.locator('[data-status="cancelled"]').first().waitFor();
  expect(await page.evaluate(() => (window as any).sameDocument)).toBe(true);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a hidden tab lets go of its link and catches up when it is looked at", async () => {
  const job = await yard.submit({ name: "looked-away", command: "sleep 600" });
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}`);
  await page.locator('[data-state="live"]').waitFor();
  const look = (hidden: boolean) =>
    page.evaluate((away) => {
      Object.defineProperty(document, "hidden", { configurable: true, get: () => away });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await look(true);
  await page.locator('[data-state="paused"]').waitFor();
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  await yard.reach(job, "cancelled");
  await look(false);
  await page.locator('[data-status="cancelled"]').first().waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});
