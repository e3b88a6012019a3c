// R37: what somebody looks at does not move; what failed is on the first page; many tabs live side by side.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openBrowser, visit } from "./browser";
import { until, Yard } from "./yard";

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

test("rows under the pointer stay where they are; new ones wait behind a pill", async () => {
  for (const name of ["row-one", "row-two", "row-three"]) await yard.submit({ name, command: ["true"], hold: true });
  const { page, wrong } = await visit(browser, yard, "/jobs");
  const row = page.locator("tr[data-job]", { hasText: "row-two" });
  await row.waitFor();
  await page.locator('[data-state="live"]').waitFor();
  await page.waitForLoadState("networkidle"); // counts above the rows come a moment later
  await row.hover();
  const before = await row.boundingBox();
  await yard.submit({ name: "row-four", command: ["true"], hold: true });
  const pill = page.getByRole("button", { name: /1 new/ });
  await pill.waitFor();
  expect(await page.locator("tr[data-job]").count()).toBe(3);
  expect((await row.boundingBox())!.y).toBe(before!.y);
  await page.mouse.move(5, 400);
  await page.locator("tr[data-job]", { hasText: "row-four" }).waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("where a proxy forbids sockets the list is asked for anew, and still stays under the pointer", async () => {
  const { page, wrong } = await visit(browser, yard, "/queue");
  await page.routeWebSocket(/monitor\/ws/, (socket) => socket.close());
  await page.goto(`${yard.url}/jobs`);
  const row = page.locator("tr[data-job]", { hasText: "row-two" });
  await row.waitFor();
  await page.waitForLoadState("networkidle");
  await row.hover();
  const before = await row.boundingBox();
  await yard.submit({ name: "row-five", command: ["true"], hold: true });
  await page.getByRole("button", { name: /1 new/ }).waitFor();
  expect((await row.boundingBox())!.y).toBe(before!.y);
  await page.mouse.move(5, 400);
  await page.locator("tr[data-job]", { hasText: "row-five" }).waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a job that failed for good is what needs you, until it is dismissed", async () => {
  const id = await yard.submit({ name: "broken", command: ["sh", "-c", "echo 'ModuleNotFoundError: No module named nothing'; exit 1"], max_retries: 0 });
  await yard.reach(id, "failed");
  const { page, wrong } = await visit(browser, yard, "/now");
  const need = page.locator("section", { has: page.locator("#needs") }).locator("li", { hasText: "broken" });
  await need.waitFor();
  await need.getByRole("button", { name: "Dismiss: broken" }).click();
  await until("it is gone", async () => (await need.count()) === 0);
  await page.reload();
  await page.getByText("Nothing needs you.").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("twelve tabs of one browser all hear of a job, and one more still loads", async () => {
  const { page, wrong } = await visit(browser, yard, "/jobs");
  const tabs = [page];
  for (let more = 1; more < 12; more += 1) {
    const tab = await page.context().newPage();
    await tab.goto(`${yard.url}/jobs`);
    tabs.push(tab);
  }
  for (const tab of tabs) await tab.locator('[data-state="live"]').waitFor();
  await yard.submit({ name: "for everybody", command: ["true"], hold: true });
  await Promise.all(tabs.map((tab) => tab.locator("tr[data-job]", { hasText: "for everybody" }).waitFor()));
  const another = await page.context().newPage();
  await another.goto(`${yard.url}/queue`);
  await another.getByText("for everybody").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});
