// R5: every page in both languages, light and dark, on a desk and on a phone: axe finds nothing serious,
// nothing is wider than the screen.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { openBrowser, visit } from "./browser";
import { Yard } from "./yard";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PHONE = { viewport: { width: 390, height: 844 } };
let yard: Yard;
let browser: Browser;
let pages: string[];

async function troubles(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const answer = await (window as any).axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] });
    return answer.violations.map((one: any) => ({ id: one.id, impact: one.impact, nodes: one.nodes.map((node: any) => node.html.slice(0, 160)) }));
  });
  return found.filter((one: any) => one.impact === "serious" || one.impact === "critical").map((one: any) => `${one.id}: ${one.nodes.slice(0, 3).join(" | ")}`);
}

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start(), openBrowser()]);
  const program = "import time\nfor i in range(1, 40000):\n    print(f'step {i}/40000 loss {3/i:.4f}', flush=True); time.sleep(0.1)";
  const running = await yard.submit({ name: "seen-by-all", command: ["python3", "-c", program] });
  const failed = await yard.submit({ name: "failed-one", command: ["python3", "-c", "raise ImportError('No module named x')"] });
  await yard.submit({ name: "waits", command: "true", gpu_count: 3 });
  await yard.ask("POST", "/alert-rules", { name: "high", expression: "loss > 10 for 5m", actions: ["notify"] });
  await yard.reach(running, "running");
  await yard.reach(failed, "failed");
  const tabs = ["", "/charts", "/logs", "/system", "/attempts", "/checkpoints", "/files", "/config"];
  pages = ["/now", "/jobs", "/jobs?new", "/queue", "/alerts", "/alerts?show=rules", "/machines", "/settings", "/settings/keys", "/settings/notifications", "/settings/about", "/nothing-here"];
  pages.push(...tabs.map((tab) => `/jobs/${running}${tab}`), `/jobs/${failed}`);
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

test.each([
  ["a desk, English, light", { locale: "en-GB", colorScheme: "light" as const }],
  ["a desk, Chinese, dark", { locale: "zh-CN", colorScheme: "dark" as const }],
  ["a phone, English, dark", { locale: "en-GB", colorScheme: "dark" as const, ...PHONE }],
])("%s", async (_name, options) => {
  const { page, wrong } = await visit(browser, yard, "/now", { reducedMotion: "reduce", ...options });
  const found: Record<string, string[]> = {};
  for (const path of pages) {
    await page.goto(yard.url + path);
    await page.locator("h1").first().waitFor();
    await page.locator('[data-state="live"]').waitFor();
    await page.waitForFunction(() => !document.querySelector(".el-skeleton")); // there may be several
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    const all = [...(await troubles(page)), ...(wide > 1 ? [`wider than the screen by ${wide} px`] : []), ...((await page.locator("h1").count()) === 1 ? [] : ["not one h1"])];
    if (all.length) found[path] = all;
  }
  expect(found).toEqual({});
  expect(wrong).toEqual([]);
  await page.context().close();
}, 600_000);

test("the login page too", async () => {
  const page = await browser.newPage({ reducedMotion: "reduce" });
  await page.goto(`${yard.url}/login`);
  await page.locator("h1").waitFor();
  expect(await troubles(page)).toEqual([]);
  await page.close();
});
