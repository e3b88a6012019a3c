// R5, R37: several people with different keys, sessions that end, and jobs with names that are meant to do harm.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser, Page } from "playwright-core";
import { openBrowser, visit } from "./browser";
import { Yard } from "./yard";

let yard: Yard;
let browser: Browser;
const keys: Record<string, string> = {};

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start(), openBrowser()]);
  for (const role of ["viewer", "user"]) keys[role] = (await yard.ask("POST", "/keys", { name: `${role}-key`, role })).secret;
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

/** As somebody else; with every answer that is a refusal. */
async function visitAs(role: string, path: string) {
  const found = await visit(browser, { url: yard.url, key: keys[role] } as Yard, path);
  const refused: string[] = [];
  found.page.on("response", (answer) => answer.status() >= 400 && refused.push(`${answer.status()} ${answer.url()}`));
  return { ...found, refused };
}

async function endSession(page: Page): Promise<void> {
  const csrf = (await (await page.context().request.get(`${yard.url}/api/v1/training/session`)).json()).csrf;
  await page.context().request.delete(`${yard.url}/api/v1/training/session`, { headers: { "X-CSRF-Token": csrf } });
}

async function logIn(page: Page): Promise<void> {
  await page.getByLabel("API key").fill(yard.key);
  await page.getByRole("button", { name: "Log in" }).click();
}

test("a session that ends while the page is open leads to the login, and from there back", async () => {
  const job = await yard.submit({ name: "outlives", command: "sleep 600" });
  await yard.reach(job, "running");
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}/config?x=time`);
  await page.locator('[data-state="live"]').waitFor();
  await page.locator('[data-action="cancel"]').waitFor();
  await endSession(page);
  // Whatever the page asks for next tells it, perhaps before this click does.
  await page.getByRole("link", { name: "Attempts" }).click({ timeout: 5000 }).catch(() => undefined);
  await page.keyboard.press("c");
  await page.getByText("Your session has ended").waitFor();
  await logIn(page);
  await page.waitForURL(new RegExp(`/jobs/${job}/`));
  await page.locator('[data-state="live"]').waitFor();
  expect((await yard.ask("GET", `/jobs/${job}`)).status).toBe("running");
  await page.locator('[data-action="cancel"]').click();
  await page.locator(".el-message-box__btns .el-button--primary").click();
  await page.locator('[data-status="cancelled"]').first().waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("whoever logged in anew in another tab goes on in the first, and no link leads elsewhere", async () => {
  const job = await yard.submit({ name: "two-tabs", command: "true", hold: true });
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}`);
  await page.locator('[data-action="release"]').waitFor();
  const other = await page.context().newPage();
  for (const to of ["//example.org/x", "https://example.org/x", "/\\example.org", "javascript:alert(1)"]) {
    await other.goto(`${yard.url}/login?to=${encodeURIComponent(to)}`);
    await logIn(other);
    await other.getByRole("heading", { level: 1, name: "Now" }).waitFor();
    expect(other.url()).toBe(`${yard.url}/now`);
  }
  await page.locator('[data-action="release"]').click();
  await page.locator('[data-status="completed"]').first().waitFor();
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a viewer sees everything, no button that would be refused, and no error", async () => {
  const job = await yard.submit({ name: "looked-at", command: "echo seen; sleep 600" });
  await yard.reach(job, "running");
  const { page, wrong, refused } = await visitAs("viewer", "/jobs");
  await page.locator(`[data-job="${job}"]`).waitFor();
  for (const path of ["/jobs", "/now", "/queue", "/machines", "/alerts", "/alerts?show=rules", "/settings/keys", "/settings/notifications", "/settings/about", `/jobs/${job}`, `/jobs/${job}/config`, `/jobs/${job}/logs`]) {
    await page.goto(yard.url + path);
    await page.locator('[data-state="live"]').waitFor();
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.waitForLoadState("networkidle");
    expect(await page.getByRole("button", { name: /^(Cancel|Clone|New job|Hold|Pause|Drain|Delete|New rule|New key|Add)/ }).count(), path).toBe(0);
    expect(await page.getByRole("alert").count(), path).toBe(0);
  }
  await page.getByText("seen", { exact: true }).waitFor();
  expect(refused).toEqual([]);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("who acts on the job of somebody else is told in words", async () => {
  const job = await yard.submit({ name: "not-yours", command: "sleep 600" });
  const { page, wrong } = await visitAs("user", `/jobs/${job}`);
  await page.locator('[data-action="cancel"]').click();
  await page.locator(".el-message-box__btns .el-button--primary").click();
  await page.locator(".el-message--error", { hasText: /owner|yours|may not|another|belongs/i }).waitFor(); // gone again soon
  expect((await yard.ask("GET", `/jobs/${job}`)).status).not.toMatch(/cancel/);
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("names, labels and lines that are HTML stay text, however long", async () => {
  const name = `<img src=x onerror="window.owned=1"> مرحبا 🚀 ${"long-".repeat(40)}`.slice(0, 200);
  const labels = Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`label-${n}`, `<b>${n}</b>`]));
  const job = await yard.submit({ name, labels, command: `printf '<script>window.owned=1</script>\\n\\033[31m<b>red</b>\\033[0m\\n'; exit 3`, max_retries: 0 });
  await yard.reach(job, "failed");
  const { page, wrong } = await visit(browser, yard, "/jobs");
  await page.locator(`[data-job="${job}"]`).waitFor();
  expect((await page.locator(`[data-job="${job}"]`).boundingBox())!.height).toBeLessThan(130);
  for (const tab of ["", "/logs", "/config", "/attempts"]) {
    await page.goto(`${yard.url}/jobs/${job}${tab}`);
    await page.locator('[data-status="failed"]').first().waitFor();
    if (tab === "/logs") await page.getByText("<script>window.owned=1</script>").waitFor();
    expect(await page.evaluate(() => document.documentElement.scrollWidth - innerWidth), tab).toBeLessThanOrEqual(0);
    expect(await page.evaluate(() => (window as any).owned ?? document.querySelectorAll("main img, main script").length), tab).toBe(0);
  }
  expect(wrong).toEqual([]);
  await page.context().close();
});

test("a job that is deleted under an open page says so", async () => {
  const job = await yard.submit({ name: "short-lived", command: "true" });
  await yard.reach(job, "completed");
  const { page, wrong } = await visit(browser, yard, `/jobs/${job}`);
  await page.locator('[data-state="live"]').waitFor();
  await page.getByText("Processes ended").waitFor();
  await yard.ask("DELETE", `/jobs/${job}`);
  await page.getByText(`There is no job ${job}.`).waitFor();
  expect(await page.locator('[data-action="delete"]').count()).toBe(0);
  expect(wrong).toEqual([]);
  await page.context().close();
});
