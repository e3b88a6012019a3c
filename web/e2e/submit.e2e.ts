// R5, R13, R37: clone, what a submit would wait for, and lists behind a filter that are live.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openBrowser, visit } from "./browser";
import { until, Yard } from "./yard";

let yard: Yard;
let browser: Browser;

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start("--max-concurrent", "1"), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

test("a clone says which secrets it has not, and runs with those that are given", async () => {
  const command = 'test "$API_TOKEN" = right && echo "$PLAIN"';
  const job = await yard.submit({ name: "has-secrets", command, env_vars: { API_TOKEN: "right", PLAIN: "as before" } });
  await yard.reach(job, "completed");
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}`);
  await page.locator('[data-action="clone"]').click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("alert").filter({ hasText: "env_vars.API_TOKEN" }).waitFor();
  const yaml = page.locator("#job-yaml");
  expect(await yaml.inputValue()).toContain("PLAIN: as before");
  expect(await yaml.inputValue()).not.toContain("***");
  await yaml.fill((await yaml.inputValue()).replace("env_vars:", "env_vars:\n  API_TOKEN: right"));
  await dialog.getByText("Would start now").waitFor();
  await page.locator('[data-action="submit"]').click();
  await until("another job is shown", () => /\/jobs\/job-/.test(page.url()) && !page.url().includes(job));
  const copy = page.url().match(/job-[^/?]+/)![0];
  await yard.reach(copy, "completed");
  await yard.says(copy, "as before");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("with all slots taken the preview says behind whom, and leads there", async () => {
  const running = await yard.submit({ name: "in-the-way", command: "sleep 600" });
  await yard.reach(running, "running");
  const { page, wrong } = await visit(browser, yard, "/jobs?new");
  await page.fill('[data-field="command"] textarea, textarea[data-field="command"]', "true");
  const preview = page.locator(".preview");
  await preview.getByText("Would wait").waitFor();
  await preview.getByRole("link", { name: "in-the-way" }).click();
  await page.waitForURL(`**/jobs/${running}`);
  await yard.ask("POST", `/jobs/${running}/force-kill`);
  await yard.reach(running, "cancelled");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a job that was submitted earlier comes into the open list of running ones when it starts", async () => {
  const first = await yard.submit({ name: "runs-first", command: "sleep 600" });
  await yard.reach(first, "running");
  const second = await yard.submit({ name: "runs-second", command: "sleep 600" });
  const { page, wrong } = await visit(browser, yard, "/jobs?status=running");
  await page.locator(`[data-job="${first}"]`).waitFor();
  await page.locator('[data-state="live"]').waitFor();
  await page.waitForLoadState("networkidle");
  await page.locator(`[data-job="${first}"]`).hover();
  await yard.ask("POST", `/jobs/${first}/force-kill`);
  await yard.reach(second, "running");
  await page.getByRole("button", { name: /1 new/ }).waitFor();
  expect(await page.locator(`[data-job="${second}"]`).count()).toBe(0);
  await page.mouse.move(5, 400);
  await page.locator(`[data-job="${second}"]`).waitFor();

  const third = await yard.submit({ name: "fits-the-search", command: "sleep 600" });
  await page.goto(`${yard.url}/jobs?status=running&q=search`);
  await page.getByText("No job matches these filters").waitFor();
  await page.locator('[data-state="live"]').waitFor();
  await yard.ask("POST", `/jobs/${second}/force-kill`);
  await yard.reach(third, "running");
  await page.locator(`[data-job="${third}"]`).waitFor();
  await yard.ask("POST", `/jobs/${third}/force-kill`);
  expect(wrong).toEqual([]);
  await page.context().close();
});
