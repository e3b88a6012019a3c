// R5, R27, R37: what keeps a server running is done on the page: order, holds, pauses, alerts, rules, keys, targets.
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Locator, Page } from "playwright-core";
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

const row = (page: Page, job: string): Locator => page.locator(`[data-job="${job}"]`);
const confirm = (page: Page) => page.locator(".el-message-box__btns .el-button--primary").click();

/** Reports this loss until it is ended. */
function reporting(loss: string): string[] {
  return ["python3", "-c", `import os, time
step = 0
while True:
    step += 1
    with open(os.environ["RUNYARD_METRICS_FILE"], "a") as file:
        file.write('{"step": %d, "loss": ${loss}}\\n' % step)
    time.sleep(0.2)`];
}

async function end(...jobs: string[]): Promise<void> {
  for (const job of jobs) await yard.ask("POST", `/jobs/${job}/force-kill`);
  for (const job of jobs) await yard.reach(job, "cancelled");
}

test("the queue says behind whom each stands; priority, hold and release change the order", async () => {
  const running = await yard.submit({ name: "takes-the-slot", command: "sleep 600" });
  await yard.reach(running, "running");
  const [first, second] = [await yard.submit({ name: "first-one", command: "true" }), await yard.submit({ name: "second-one", command: "true" })];
  const after = await yard.submit({ name: "after-it", command: "true", depends_on: [running] });
  const { page, wrong } = await visit(browser, yard, "/queue");
  await row(page, first).getByText("behind takes-the-slot").waitFor();
  await row(page, second).getByText(/behind\s+first-one, takes-the-slot/).waitFor();
  await row(page, after).getByRole("link", { name: "takes-the-slot" }).waitFor();

  await page.getByLabel("Priority of second-one").selectOption("high");
  await row(page, second).locator(".place", { hasText: "1" }).waitFor();
  await row(page, first).locator(".place", { hasText: "2" }).waitFor();
  expect((await yard.ask("GET", `/jobs/${second}`)).priority).toBe("high");

  await page.getByRole("button", { name: "Hold: second-one" }).click();
  await row(page, first).locator(".place", { hasText: "1" }).waitFor();
  expect((await yard.ask("GET", `/jobs/${second}`)).hold).toBe(true);
  await page.getByRole("button", { name: "Release: second-one" }).click();
  await row(page, second).locator(".place", { hasText: "1" }).waitFor();

  await row(page, second).getByRole("link", { name: "takes-the-slot" }).click();
  await page.waitForURL(`**/jobs/${running}`);
  await end(running);
  for (const job of [first, second]) await yard.reach(job, "completed");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("while dispatching is paused nothing starts, and everybody sees it", async () => {
  const { page, wrong } = await visit(browser, yard, "/queue");
  const dispatch = page.locator('[data-action="dispatch"]');
  await dispatch.filter({ hasText: "Pause" }).click();
  await page.getByText("Paused: nothing new starts").waitFor();
  const job = await yard.submit({ name: "waits-for-the-switch", command: "true" });
  await row(page, job).waitFor();
  const other = await page.context().newPage();
  await other.goto(`${yard.url}/now`);
  await other.getByText("Dispatching is paused: nothing new starts.").waitFor();
  expect((await yard.ask("GET", `/jobs/${job}`)).status).toBe("pending");
  await dispatch.filter({ hasText: "Start" }).click();
  await page.getByText("New jobs are started as room comes free.").waitFor();
  await yard.reach(job, "completed");
  await until("it is gone from the queue", async () => (await row(page, job).count()) === 0);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a drained machine takes nothing new until it is told to", async () => {
  const { page, wrong } = await visit(browser, yard, "/machines");
  const drain = page.locator('[data-action="drain"]');
  await drain.click();
  await confirm(page);
  await page.getByText("drained: takes no new jobs").waitFor();
  const job = await yard.submit({ name: "no-room-here", command: "true" });
  await until("it is told why", async () => (await yard.ask("GET", `/jobs/${job}`)).wait?.code === "node_drained");
  await drain.filter({ hasText: "Take jobs again" }).click();
  await until("the mark is gone", async () => (await page.getByText("drained: takes no new jobs").count()) === 0);
  await yard.reach(job, "completed");
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("an alert is acknowledged, then closed, and found where it went", async () => {
  const job = await yard.submit({ name: "no-number", command: reporting("NaN") });
  const { page, wrong } = await visit(browser, yard, "/alerts");
  const card = page.locator("[data-alert]", { hasText: "loss is NaN" }).first();
  await card.waitFor(); // it comes by itself, in an open page
  const alert = await card.getAttribute("data-alert");
  const same = page.locator(`[data-alert="${alert}"]`);
  await same.getByRole("button", { name: "Acknowledge" }).click();
  await until("it is no more among the open ones", async () => (await same.count()) === 0);
  await page.getByRole("link", { name: "Acknowledged" }).click();
  await same.getByText("acknowledged by").waitFor();
  await same.getByRole("button", { name: "Close" }).click(); // some close by themselves when their job ends
  await page.getByRole("link", { name: "Closed" }).click();
  await same.waitFor();
  expect(await same.getByRole("button", { name: /Acknowledge|Close/ }).count()).toBe(0);
  await end(job);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a rule is tried on history, saved, fires, and is turned off", async () => {
  const before = await yard.submit({ name: "history", command: reporting("77") });
  await until("it is recorded", async () => (await yard.ask("GET", `/jobs/${before}`)).metrics.loss === 77);
  const { page, wrong } = await visit(browser, yard, "/alerts?show=rules");
  await page.locator('[data-action="new-rule"]').click();
  const field = (name: string) => page.locator(`[data-field="${name}"] input, input[data-field="${name}"]`);
  await field("rule-name").fill("too-high");
  await field("rule-expression").fill("loss >");
  await page.locator('[data-action="preview-rule"]').click();
  await page.locator(".editor .tone-danger").waitFor(); // said before it is saved
  await field("rule-expression").fill("loss > 50");
  await until("history holds what the job told", async () => {
    await page.locator('[data-action="preview-rule"]').click();
    return /fired [1-9]/.test(await page.getByText(/It would have fired \d+ times/).innerText());
  });
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".rule", { hasText: "too-high" }).getByText("loss > 50").waitFor();
  await page.goto(`${yard.url}/alerts`);
  await page.locator("[data-alert]", { hasText: "rule too-high" }).waitFor();
  await end(before);
  await page.goto(`${yard.url}/alerts?show=rules`);
  await page.getByRole("switch", { name: "On: too-high" }).locator("..").click();
  await until("it is off", async () => (await yard.ask("GET", "/alert-rules")).every((rule: any) => !rule.enabled));
  await page.getByRole("button", { name: "Delete: too-high" }).click();
  await confirm(page);
  await page.getByText("No rules of your own yet").waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a key is shown once, opens the server, and is revoked", async () => {
  const { page, wrong } = await visit(browser, yard, "/settings/keys");
  await page.locator('[data-field="key-name"] input, input[data-field="key-name"]').fill("for-the-robot");
  await page.getByLabel("Role").selectOption("viewer");
  await page.getByRole("button", { name: "New key" }).click();
  const shown = page.locator(".once");
  await shown.getByText("not shown again").waitFor();
  const secret = (await shown.innerText()).match(/\S{20,}/)![0];
  const opens = async () => (await fetch(`${yard.url}/api/v1/training/jobs`, { headers: { Authorization: `Bearer ${secret}` } })).status;
  expect(await opens()).toBe(200);
  await page.reload();
  await page.getByRole("cell", { name: "for-the-robot", exact: true }).waitFor();
  expect(await page.content()).not.toContain(secret);
  await page.getByRole("button", { name: "Revoke: for-the-robot" }).click();
  await confirm(page);
  await until("it is gone", async () => (await page.getByRole("cell", { name: "for-the-robot", exact: true }).count()) === 0);
  expect(await opens()).toBe(401);
  expect(wrong).toEqual([]);
  await page.context().close();
});

async function receiver(): Promise<{ server: Server; url: string; got: string[]; answer: { status: number } }> {
  const [got, answer] = [[] as string[], { status: 204 }];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (part) => (text += part));
    request.on("end", () => {
      got.push(text);
      response.writeHead(answer.status).end();
    });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, got, answer };
}

test("a target is tried out, and what it answered is said", async () => {
  const { server, url, got, answer } = await receiver();
  try {
    const { page, wrong } = await visit(browser, yard, "/settings/notifications");
    await page.getByLabel("Name").fill("the-hook");
    await page.getByLabel("Address").fill(url);
    await page.getByRole("button", { name: "New target" }).click();
    const target = page.locator(".target", { hasText: "the-hook" });
    await target.getByRole("button", { name: "Send a test" }).click();
    const sent = page.locator("section", { has: page.locator("#deliveries") }).locator("p"); // the toast is gone soon
    await sent.filter({ hasText: "· sent ·" }).waitFor();
    expect(got).toHaveLength(1);
    expect(() => JSON.parse(got[0]!)).not.toThrow();
    answer.status = 410;
    await target.getByRole("button", { name: "Send a test" }).click();
    await sent.filter({ hasText: "the receiver answered 410" }).waitFor();
    await page.getByRole("button", { name: "Delete: the-hook" }).click();
    await confirm(page);
    await page.getByText("Nobody is told anything yet").waitFor();
    expect(wrong).toEqual([]);
    await page.context().close();
  } finally {
    server.closeAllConnections();
    server.close();
  }
});
