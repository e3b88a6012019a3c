// R37: the charts of real jobs, in a real browser.
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, visit } from "./browser";
import { until, Yard } from "./yard";

const PYTHON = resolve(__dirname, "../../.venv/bin/python");
let yard: Yard;
let browser: Browser;

const TRAIN = [
  "import time, math, os, sys",
  "from runyard import report",
  "slow = float(os.environ.get('SLOW', '0'))",
  "steps = int(os.environ.get('STEPS', '400'))",
  "for step in range(steps):",
  "    loss = 2.5 * math.exp(-step / 150) + 0.05 * math.sin(step * 1.7) + 0.3",
  "    if step == 120: loss = 9.0",
  "    if step in (250, 251): loss = float('nan')",
  "    report(step=step, total=steps, loss=loss, val_loss=loss + 0.2, accuracy=1 - 1 / (1 + step / 40), lr=1e-3 * (1 - step / 1000))",
  "    time.sleep(slow)",
].join("\n");

const job = (name: string, env: Record<string, string> = {}) => ({ name, command: [PYTHON, "-c", TRAIN], env_vars: env });

beforeAll(async () => {
  yard = await new Yard().start();
  browser = await openBrowser();
});
afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

async function metricsOf(id: string): Promise<Record<string, any>> {
  return (await yard.ask("GET", `/jobs/${id}/metrics`)).series;
}

test("an ended job: every metric has a chart that says in words what it shows", async () => {
  const id = await yard.submit(job("curves"));
  await yard.reach(id, "completed");
  await until("all points are there", async () => (await metricsOf(id)).loss?.steps.at(-1) === 399);
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/charts`);
  const loss = page.locator('[data-metric="loss"]');
  await loss.locator("canvas").waitFor();
  const words = (await loss.locator('[role="img"]').getAttribute("aria-label")) ?? "";
  expect(words).toMatch(/400 points.*highest 9\b.*2 values are not finite, the first at 250/);
  const own = () => page.evaluate(() => document.querySelectorAll(".chart .name").length - document.querySelectorAll(".system .chart").length);
  expect(await own()).toBe(4);

  await page.fill(".filter", "acc");
  await until("only one is left", async () => (await page.locator(".charts").first().locator(".chart").count()) === 1);
  await until("it is in the address", () => page.url().includes("metric=acc"));
  await page.fill(".filter", "");
  await until("all are there again", async () => (await own()) === 4 && !page.url().includes("metric="));

  await loss.locator("select").selectOption("val_loss");
  await page.locator('[data-metric="loss val_loss"] canvas').waitFor();
  await until("both are in the address", () => decodeURIComponent(page.url()).includes("with=loss:val_loss"));

  await page.getByRole("button", { name: "Show as a table" }).nth(2).click();
  await until("the table is there", async () => (await page.locator("table tbody tr").count()) > 100);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("dragging zooms all charts, the address keeps it, and a double click shows all again", async () => {
  const id = await yard.submit(job("zoomed"));
  await yard.reach(id, "completed");
  await until("all points are there", async () => (await metricsOf(id)).loss?.steps.at(-1) === 399);
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/charts`);
  const over = page.locator('[data-metric="loss"] .u-over');
  await page.locator('[data-state="live"]').waitFor();
  await page.waitForLoadState("networkidle"); // nothing comes any more that would move it
  await over.hover();
  const box = (await over.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 60, { steps: 5 });
  await page.mouse.up();
  await until("the range is in the address", () => page.url().includes("zoom="));
  const range = decodeURIComponent(/zoom=([^&]+)/.exec(page.url())![1]!).split("~").map(Number);
  expect(range[0]).toBeGreaterThan(80);
  expect(range[1]).toBeLessThan(220);
  await page.reload();
  await page.locator(".pill", { hasText: "show all" }).waitFor();
  await page.locator('[data-state="live"]').waitFor();
  await page.waitForLoadState("networkidle");
  await over.dblclick({ position: { x: 80, y: 50 } });
  await until("all is shown", () => !page.url().includes("zoom="));
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("points of a running job appear by themselves, and a zoomed chart does not jump", async () => {
  const id = await yard.submit(job("live", { SLOW: "0.1", STEPS: "100000" })); // longer than any test
  await yard.reach(id, "running");
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/charts`);
  const loss = page.locator('[data-metric="loss"] [role="img"]');
  await loss.waitFor();
  const count = async () => Number(/([\d,]+) points/.exec((await loss.getAttribute("aria-label")) ?? "")?.[1]?.replaceAll(",", "") ?? 0);
  await until("there are some", async () => (await count()) > 5);
  const before = await count();
  await until("there are more", async () => (await count()) > before + 10);
  expect(await page.locator(".pill.on").innerText()).toContain("following");
  await page.goto(`${yard.url}/jobs/${id}/charts?zoom=2~5`);
  await page.locator(".pill", { hasText: "back to live" }).waitFor();
  const then = await until("loaded again", count);
  await until("it goes on below", async () => (await count()) > then + 10);
  expect(page.url()).toContain("zoom=2~5");
  await yard.ask("POST", `/jobs/${id}/cancel`);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a job without metrics teaches how to report some", async () => {
  const id = await yard.submit({ name: "silent", command: ["true"] });
  await yard.reach(id, "completed");
  const { page } = await visit(browser, yard, `/jobs/${id}/charts`);
  await page.getByText("from runyard import report").waitFor();
  await page.context().close();
});

test("the overview shows the curve that says most, the newest checkpoint, and what an ended job used", async () => {
  const saves = `${TRAIN}\nimport pathlib; saved = pathlib.Path(os.environ['RUNYARD_OUTPUT_DIR'], 'model.bin'); saved.write_bytes(b'x' * 100)\n`;
  const told = "report.checkpoint(str(saved), step=399)\nwhile not os.path.exists(os.environ['GO']): sum(range(10**5))";
  const go = join(yard.folder, "go");
  const id = await yard.submit({ ...job("whole", { GO: go }), command: [PYTHON, "-c", saves + told], labels: { team: "vision" } });
  await until("the processor was measured", async () => (await metricsOf(id))["system.cpu_percent"]);
  writeFileSync(go, "");
  await yard.reach(id, "completed");
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}`);
  await page.locator('.chart[data-metric="loss"] canvas').waitFor();
  await page.getByText("Used at most, against requested").waitFor();
  await page.getByText(/ \/ 0\.1 cores/).waitFor();
  await until("the checkpoint is named", async () => /step 399/.test(await page.locator('[data-fact="checkpoint"]').innerText()));
  await page.getByText("vision").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("what an attempt measured before it was done again is drawn when it is asked for", async () => {
  const twice = [
    "import os, sys",
    "from runyard import report",
    "first = os.environ['RUNYARD_ATTEMPT'] == '1'",
    "for step in range(50): report(step=step, loss=float('nan') if first and step > 40 else 50 - step)",
    "sys.exit(3 if first else 0)",
  ].join("\n");
  const id = await yard.submit({ name: "twice", command: [PYTHON, "-c", twice], max_retries: 0 });
  await yard.reach(id, "failed");
  await yard.ask("POST", `/jobs/${id}/retry`);
  await yard.reach(id, "completed");
  const { page, wrong } = await visit(browser, yard, `/jobs/${id}/charts`);
  await page.locator('[data-metric="loss"] canvas').waitFor();
  const asked = page.waitForResponse((answer) => answer.url().includes("attempt=1"));
  await page.locator('[data-choice="earlier"]').check();
  const { series } = await (await asked).json();
  expect(series.loss.values.at(-1)).toBe("NaN");
  await until("it is in the address", () => page.url().includes("earlier=1"));
  await page.locator('[data-metric="loss"] canvas').waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});
