// R37: the logs of real jobs, in a real browser.
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, visit } from "./browser";
import { until, Yard } from "./yard";

const PYTHON = resolve(__dirname, "../../.venv/bin/python");
let yard: Yard;
let browser: Browser;

beforeAll(async () => {
  yard = await new Yard().start();
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

const python = (script: string) => [PYTHON, "-u", "-c", script];
const text = (page: Page) => page.locator(".log .rows").innerText();
const line = (page: Page, number: number) => page.locator(`.log [data-line="${number}"]`);

test("a million lines open at their end, and any of them is found", async () => {
  const id = await yard.submit({ name: "million", command: python("import sys\nsys.stdout.write(''.join(f'line {n} of the log with some words in it\\n' for n in range(1000000)))") });
  await yard.reach(id, "completed");
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/logs`);
  await line(page, 1_000_000).waitFor();
  await page.locator(".foot", { hasText: "1,000,000 lines" }).waitFor();

  await page.keyboard.press("Home");
  await until("the first line is there", async () => (await text(page)).includes("line 0 of the log"));
  await page.evaluate(() => (document.querySelector(".log")!.scrollTop = document.querySelector(".log")!.scrollHeight / 2));
  await until("the middle is there", async () => /line (49|50)\d{4} of the log/.test(await text(page)));

  await page.keyboard.press("/");
  await page.keyboard.type("line 4321");
  await until("all are counted", async () => (await page.locator("[data-found]").innerText()) === "111 lines match");
  await page.keyboard.press("Home");
  await page.locator(".log").focus();
  await page.keyboard.press("n");
  await until("the first match is shown", async () => (await page.locator(".log .current").getAttribute("data-line")) !== null);
  expect(await page.locator(".log mark").first().innerText()).toBe("line 4321");

  await page.goto(`${yard.url}/jobs/${id}/logs?line=123457`);
  await line(page, 123_457).waitFor();
  await until("its text is there", async () => (await line(page, 123_457).innerText()).includes("line 123456 of the log"));
  expect(await line(page, 123_457).getAttribute("class")).toContain("marked");
  await page.keyboard.press("End");
  await line(page, 1_000_000).waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("live: colours, bars folded to one line, following until somebody scrolls up", async () => {
  const script = [
    "import sys, time",
    "print('\\x1b[1;31mred\\x1b[0m and plain'); print('2026-01-02 03:04:05,678 ERROR it broke')",
    "for n in range(101): sys.stdout.write(f'\\rbar {n}%'); sys.stdout.flush(); time.sleep(0.01)",
    "print()",
    "for n in range(100000): print('row', n, flush=True); time.sleep(0.02)",
  ].join("\n");
  const id = await yard.submit({ name: "live", command: python(script) });
  await yard.reach(id, "running");
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/logs`);
  const newest = async () => Math.max(...[...(await text(page)).matchAll(/row (\d+)/g)].map((found) => Number(found[1])));
  await until("it follows, more than a screen is written", async () => (await newest()) >= 100);
  await page.keyboard.press("Home");
  await until("the beginning", async () => (await text(page)).includes("red and plain"));
  expect(await page.locator(".log .ansi-1.ansi-bold").innerText()).toBe("red");
  expect(await line(page, 2).getAttribute("class")).toContain("level-error");
  expect(await line(page, 3).innerText()).toContain("bar 100%");
  const before = await text(page);
  const count = async () => Number((await page.locator(".foot").innerText()).replace(/[^\d,].*/, "").replaceAll(",", ""));
  const then = await count();
  await until("more was written", async () => (await count()) > then + 20);
  expect(await text(page)).toBe(before);
  await page.keyboard.press("f");
  await page.locator(".pill.on").waitFor();
  await until("at the end again", async () => (await line(page, await count()).count()) > 0);
  await yard.ask("POST", `/jobs/${id}/cancel`);
  await yard.reach(id, "cancelled");
  await until("it is told that this was all", async () => /ended/.test(await page.locator(".foot").innerText()));
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("lines are wrapped when asked, and marked lines are in the address", async () => {
  const id = await yard.submit({ name: "wide", command: python("for n in range(200): print(n, 'wide ' * 200)\nprint('the end')") });
  await yard.reach(id, "completed");
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/logs`);
  await until("the end is there", async () => (await text(page)).includes("the end"));
  await page.getByRole("button", { name: "Wrap" }).click();
  await until("lines are high", async () => ((await line(page, 200).boundingBox())?.height ?? 0) > 60);
  const bottomOf = (box: { y: number; height: number } | null) => box!.y + box!.height;
  await until("the last one is still on screen", async () => (await line(page, 201).boundingBox())!.y < bottomOf(await page.locator(".log").boundingBox()));
  await line(page, 199).locator("button").click();
  await line(page, 200).locator("button").click({ modifiers: ["Shift"] });
  await until("both are in the address", () => page.url().includes("line=199-200"));
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("the log of another rank is followed to its end", async () => {
  const go = join(yard.folder, "go");
  const script = [
    "import os, time",
    "print('rank', os.environ['RANK'], 'begins')",
    `while not os.path.exists(${JSON.stringify(go)}): time.sleep(0.05)`,
    "print('rank', os.environ['RANK'], 'is done')",
  ].join("\n");
  const id = await yard.submit({ name: "ranks", command: python(script), distributed: { procs_per_node: 2 } });
  await yard.reach(id, "running");
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/logs?rank=1`);
  const polled: string[] = [];
  page.on("request", (request) => request.url().includes("raw=true") && polled.push(request.url()));
  await until("it began", async () => (await text(page)).includes("rank 1 begins"));
  await page.locator(".pill.on").waitFor();
  writeFileSync(go, "");
  await until("its last line is there", async () => (await text(page)).includes("rank 1 is done"));
  await until("it is told that this was all", async () => /ended/.test(await page.locator(".foot").innerText()));
  expect(await page.locator(".pill.on").count()).toBe(0);
  expect(polled).toEqual([]);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a dropped middle is one line that says how much", async () => {
  process.env.RUNYARD_LOG_CAP_MB = "4";
  const capped = await new Yard().start();
  delete process.env.RUNYARD_LOG_CAP_MB;
  try {
    await droppedMiddle(capped);
  } finally {
    await capped.stop();
  }
});

async function droppedMiddle(capped: Yard): Promise<void> {
  const script = "import sys\nfor n in range(120): sys.stdout.write(''.join(f'line {n*1000+i} ' + 'x'*80 + '\\n' for i in range(1000)))\nimport time; time.sleep(600)";
  const id = await capped.submit({ name: "capped", command: python(script) });
  await until("the middle was dropped", async () => {
    const { outline } = await capped.ask("GET", `/jobs/${id}/logs?tail=1&outline=true`);
    return outline.total === 120_000 && outline.dropped.length > 0;
  });
  const { page } = await visit(browser, capped, `/jobs/${id}/logs`);
  await line(page, 120_000).waitFor();
  await page.goto(`${capped.url}/jobs/${id}/logs?line=60000`);
  await page.locator(".log .gap").waitFor();
  expect(await page.locator(".log .gap").innerText()).toMatch(/MiB dropped here, [\d,]+ lines/);
  const after = Number(await page.locator(".log .gap + [data-line]").getAttribute("data-line"));
  await until("the lines behind it have their numbers", async () => (await line(page, after + 1).innerText()).includes(`line ${after} x`));
  await page.context().close();
}
