// What the first page loads, asked for again as gzip; and how long until rows are on screen, each time with an empty cache.
import { request } from "node:http";
import { answer, asked, loggedIn, openChrome, paintedAt, watchFor } from "./chrome.mjs";

function packedSize(url, cookie) {
  return new Promise((done, fail) => {
    request(url, { headers: { "Accept-Encoding": "gzip", Cookie: cookie } }, (reply) => {
      let bytes = 0;
      reply.on("data", (chunk) => (bytes += chunk.length));
      reply.on("end", () => done({ bytes, packed: reply.headers["content-encoding"] === "gzip" }));
    })
      .on("error", fail)
      .end();
  });
}

async function firstPage(browser) {
  const context = await loggedIn(browser, asked);
  const page = await context.newPage();
  const files = new Set();
  page.on("response", (reply) => {
    const { pathname } = new URL(reply.url());
    if (!pathname.startsWith("/api/")) files.add(reply.url());
  });
  await page.goto(`${asked.url}/now`);
  await page.locator("h1").waitFor();
  await page.waitForLoadState("networkidle", { timeout: 5000 }).catch(() => undefined);
  const cookie = (await context.cookies()).map((one) => `${one.name}=${one.value}`).join("; ");
  const sizes = [];
  for (const url of files) sizes.push((await packedSize(url, cookie)).bytes);
  await context.close();
  return { bytes: sizes.reduce((sum, one) => sum + one, 0), files: files.size };
}

async function rows(browser, path) {
  const context = await loggedIn(browser, asked);
  const page = await context.newPage();
  await watchFor(page, "tr[data-job]");
  await page.goto(asked.url + path, { waitUntil: "commit" });
  const at = await paintedAt(page);
  const began = await page.evaluate(() => performance.timeOrigin);
  await context.close();
  return at - began;
}

const browser = await openChrome();
try {
  const first = await firstPage(browser);
  await rows(browser, "/jobs"); // the browser itself starts
  const times = [];
  for (let turn = 0; turn < asked.times; turn += 1) times.push(await rows(browser, "/jobs"));
  answer({ ...first, times });
} finally {
  await browser.close();
}
