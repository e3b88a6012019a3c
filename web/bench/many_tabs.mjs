// Many tabs of one browser: each has its live link, each hears of a new job, and pages still load beside them.
import { answer, asked, loggedIn, openChrome } from "./chrome.mjs";

const headers = { Authorization: `Bearer ${asked.key}`, "Content-Type": "application/json" };

async function submit(name) {
  const job = { name, command: ["true"], cpu_cores: 0.01, memory_gb: 0.01, gpu_count: 0, hold: true };
  const reply = await fetch(`${asked.url}/api/v1/training/jobs`, { method: "POST", headers, body: JSON.stringify(job) });
  if (!reply.ok) throw new Error(await reply.text());
}

/** Milliseconds from `began` until the tab shows this name. */
async function shows(tab, name, began) {
  await tab.waitForFunction((wanted) => [...document.querySelectorAll("tr[data-job] .name a")].some((one) => one.textContent === wanted), name, { polling: "raf", timeout: 20_000 });
  return Date.now() - began;
}

async function ready(tab) {
  await tab.locator("tr[data-job]").first().waitFor({ timeout: 120_000 });
  await tab.locator('[data-state="live"]').waitFor({ timeout: 120_000 });
}

const browser = await openChrome();
try {
  const context = await loggedIn(browser, asked);
  const tabs = [];
  for (let turn = 0; turn < asked.tabs; turn += 1) {
    const tab = await context.newPage();
    await tab.goto(`${asked.url}/jobs`);
    await ready(tab);
    tabs.push(tab);
  }
  const heard = [];
  for (let turn = 0; turn < asked.times; turn += 1) {
    const name = `for-all-tabs-${turn}`;
    const began = Date.now();
    await submit(name);
    heard.push(...(await Promise.allSettled(tabs.map((tab) => shows(tab, name, began)))).map((one) => (one.status === "fulfilled" ? one.value : null)));
  }
  const one = Date.now();
  const beside = await context.newPage();
  await beside.goto(`${asked.url}/jobs`);
  await ready(beside);
  const loadedBeside = Date.now() - one;
  await beside.close();
  const all = Date.now();
  await Promise.all(tabs.map(async (tab) => (await tab.reload(), await ready(tab))));
  answer({ heard, loadedBeside, reloadedAll: Date.now() - all });
} finally {
  await browser.close();
}
