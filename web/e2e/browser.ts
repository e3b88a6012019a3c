// Headless Chromium of the system; a page that is logged in and complains about anything it should not do.
import { type Browser, type Page, chromium } from "playwright-core";
import type { Yard } from "./yard";

const ARGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

export async function openBrowser(): Promise<Browser> {
  return chromium.launch({ timeout: 60_000, executablePath: process.env.RUNYARD_CHROMIUM ?? "/usr/bin/chromium", args: ARGS });
}

export interface Visit {
  page: Page;
  /** Errors of scripts and requests that left the server; empty in every test. */
  wrong: string[];
}

export async function visit(browser: Browser, yard: Yard, path = "/", options: Parameters<Browser["newContext"]>[0] = {}): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, locale: "en-GB", ...options });
  context.setDefaultTimeout(60_000); // of a machine that does much else
  const page = await context.newPage();
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/Failed to load resource|WebSocket connection/.test(message.text())) wrong.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(yard.url) && !/^(data|blob|ws)/.test(request.url())) wrong.push(`left the server: ${request.url()}`);
  });
  const answer = await context.request.post(`${yard.url}/api/v1/training/session`, { data: { key: yard.key } });
  if (!answer.ok()) throw new Error(`login: ${answer.status()} ${await answer.text()}`);
  await page.goto(yard.url + path);
  await page.locator("h1").first().waitFor(); // a page that is left while it begins may complain
  return { page, wrong };
}
