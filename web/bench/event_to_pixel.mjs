// From just before a request is sent, or a line is written, until what it changes was painted.
import { appendFileSync } from "node:fs";
import { answer, asked, loggedIn, openChrome, until } from "./chrome.mjs";

const BASE = `${asked.url}/api/v1/training`;
const headers = { Authorization: `Bearer ${asked.key}`, "Content-Type": "application/json" };

/** In the page: the time at which a text was painted, by text. */
function note(selector) {
  window.seen = {};
  const look = () => {
    const fresh = [...document.querySelectorAll(selector)].flatMap((one) => one.textContent.match(/mark-\d+/g) ?? []).filter((text) => !(text in window.seen));
    for (const text of fresh) window.seen[text] = null;
    if (fresh.length) requestAnimationFrame(() => requestAnimationFrame(() => fresh.forEach((text) => (window.seen[text] = performance.timeOrigin + performance.now()))));
  };
  new MutationObserver(look).observe(document.querySelector("main"), { childList: true, subtree: true, characterData: true });
}

async function measured(page, selector, cause) {
  await page.evaluate(note, selector);
  const times = [];
  for (let turn = 0; turn < asked.times; turn += 1) {
    const text = `mark-${turn}`;
    const began = Date.now();
    await cause(text);
    const painted = await until(text, () => page.evaluate((wanted) => window.seen[wanted], text));
    times.push(painted - began);
    await new Promise((done) => setTimeout(done, 150 + Math.random() * 200));
  }
  return times;
}

async function submit(name) {
  const job = { name, command: ["true"], cpu_cores: 0.01, memory_gb: 0.01, gpu_count: 0, hold: true };
  const reply = await fetch(`${BASE}/jobs`, { method: "POST", headers, body: JSON.stringify(job) });
  if (!reply.ok) throw new Error(await reply.text());
}

const browser = await openChrome();
try {
  const context = await loggedIn(browser, asked);
  const list = await context.newPage();
  await list.goto(`${asked.url}/jobs`);
  await list.locator("tr[data-job]").first().waitFor();
  await list.locator('[data-state="live"]').waitFor();
  const rows = await measured(list, "tr[data-job] .name", submit);
  await list.close();
  const log = await context.newPage();
  await log.goto(`${asked.url}/jobs/${asked.writer}/logs`);
  await log.locator(".pill.on").waitFor();
  const lines = await measured(log, ".log", (text) => appendFileSync(asked.fifo, `${text}\n`));
  answer({ rows, lines });
} finally {
  await browser.close();
}
