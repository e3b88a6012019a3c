// What the browser takes of a core while many charts of many points get a point each second, all of them on screen.
import { readFileSync, readdirSync } from "node:fs";
import { answer, asked, loggedIn, openChrome, until } from "./chrome.mjs";

const TICKS = 100;

/** CPU seconds of every process below this one: the browser, its pages and what draws them. */
function used() {
  const parents = new Map();
  const ticks = new Map();
  for (const name of readdirSync("/proc").filter((one) => /^\d+$/.test(one))) {
    try {
      const fields = readFileSync(`/proc/${name}/stat`, "latin1").replace(/^.*\) /s, "").split(" ");
      parents.set(Number(name), Number(fields[1]));
      ticks.set(Number(name), Number(fields[11]) + Number(fields[12]));
    } catch {
      // it has ended
    }
  }
  const below = (pid) => pid !== undefined && (pid === process.pid || below(parents.get(pid)));
  return [...ticks].filter(([pid]) => pid !== process.pid && below(pid)).reduce((sum, [, one]) => sum + one, 0) / TICKS;
}

async function share(seconds) {
  const [before, began] = [used(), performance.now()];
  await new Promise((done) => setTimeout(done, seconds * 1000));
  return ((used() - before) / ((performance.now() - began) / 1000)) * 100;
}

const browser = await openChrome();
try {
  const context = await loggedIn(browser, asked, { viewport: { width: 1360, height: 3400 } });
  const page = await context.newPage();
  await page.goto(`${asked.url}/settings`);
  await page.locator("h1").waitFor();
  await new Promise((done) => setTimeout(done, 3000));
  const idle = await share(asked.seconds / 2);
  const began = performance.now();
  await page.goto(`${asked.url}/jobs/${asked.job}/charts`);
  await until("all charts are drawn", async () => (await page.locator(".chart canvas").count()) >= asked.charts, 60_000);
  const opened = performance.now() - began;
  await new Promise((done) => setTimeout(done, 5000));
  const steps = () => page.evaluate(() => Object.fromEntries([...document.querySelectorAll('.chart [role="img"]')].map((one, index) => [index, one.getAttribute("aria-label")])));
  const before = await steps();
  const busy = await share(asked.seconds);
  const after = await steps();
  const moved = Object.keys(after).filter((index) => after[index] !== before[index]).length;
  answer({ idle, busy, opened, moved, charts: Object.keys(after).length });
} finally {
  await browser.close();
}
