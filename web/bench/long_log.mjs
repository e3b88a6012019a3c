// From the click on "Logs" until the last line of a very long log was painted; and by its own address, with an empty cache.
import { answer, asked, loggedIn, openChrome, paintedAt, watchFor } from "./chrome.mjs";

const LAST = `[data-line="${asked.lines}"]`;

async function byClick(page) {
  await page.goto(`${asked.url}/jobs/${asked.job}`);
  const tab = page.locator('nav.tabs a[href$="/logs"]');
  await tab.waitFor();
  await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => undefined);
  const began = await page.evaluate(() => performance.timeOrigin + performance.now());
  await tab.evaluate((link) => link.click());
  return (await paintedAt(page)) - began;
}

async function byAddress(browser) {
  const context = await loggedIn(browser, asked);
  const page = await context.newPage();
  await watchFor(page, LAST);
  await page.goto(`${asked.url}/jobs/${asked.job}/logs`, { waitUntil: "commit" });
  const at = await paintedAt(page);
  const began = await page.evaluate(() => performance.timeOrigin);
  await context.close();
  return at - began;
}

const browser = await openChrome();
try {
  const context = await loggedIn(browser, asked);
  const page = await context.newPage();
  await watchFor(page, LAST);
  const clicks = [];
  const addresses = [];
  for (let turn = 0; turn <= asked.times; turn += 1) {
    clicks.push(await byClick(page));
    addresses.push(await byAddress(browser));
  }
  answer({ clicks: clicks.slice(1), addresses: addresses.slice(1) });
} finally {
  await browser.close();
}
