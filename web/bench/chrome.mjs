// Headless Chromium of the system with a tab that is logged in; for measurements and pictures.
import { chromium } from "playwright-core";

const ARGS = [
  ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync", "--force-color-profile=srgb"],
];

export async function openChrome() {
  return chromium.launch({ executablePath: process.env.RUNYARD_CHROMIUM ?? "/usr/bin/chromium", args: ARGS });
}

/** A profile of its own, logged in with a key. */
export async function loggedIn(browser, { url, key }, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, locale: "en-GB", ...options });
  const answer = await context.request.post(`${url}/api/v1/training/session`, { data: { key } });
  if (!answer.ok()) throw new Error(`login: ${answer.status()} ${await answer.text()}`);
  return context;
}

export async function until(what, look, limitMs = 30_000) {
  const limit = Date.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > limit) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** What Python asked for, and the answer it waits for. */
export const asked = process.argv[2] ? JSON.parse(process.argv[2]) : {};
export function answer(found) {
  console.log(JSON.stringify(found));
}

/** Called in a page: when something that matches `selector` was first painted, in milliseconds since 1970. */
export async function watchFor(page, selector) {
  await page.addInitScript((wanted) => {
    window.painted = null;
    const look = () => {
      if (window.painted !== null || !document.querySelector(wanted)) return;
      window.painted = 0;
      // After the frame that shows it: the next one has begun, so this one was drawn.
      requestAnimationFrame(() => requestAnimationFrame(() => (window.painted = performance.timeOrigin + performance.now())));
    };
    new MutationObserver(look).observe(document, { childList: true, subtree: true });
  }, selector);
}

export async function paintedAt(page, limitMs = 30_000) {
  return (await page.waitForFunction(() => window.painted || null, null, { timeout: limitMs, polling: "raf" })).jsonValue();
}
