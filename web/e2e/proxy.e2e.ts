// Behind a reverse proxy, below a path of its own; and where the proxy lets no socket through.
import { createServer, request, type Server } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openBrowser } from "./browser";
import { Yard } from "./yard";

const PREFIX = "/yard";
let yard: Yard;
let browser: Browser;

beforeAll(async () => {
  [yard, browser] = await Promise.all([new Yard().start(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await yard?.stop();
});

/** Strips the prefix and says so, as nginx would be told to; `sockets` false refuses upgrades. */
async function proxy(sockets: boolean): Promise<{ server: Server; url: string }> {
  const target = new URL(yard.url);
  const inner = (url: string) => url.slice(PREFIX.length) || "/";
  const server = createServer((asked, answer) => {
    if (!asked.url?.startsWith(PREFIX)) return void answer.writeHead(404).end();
    const headers = { ...asked.headers, "x-forwarded-prefix": PREFIX, "x-forwarded-for": "127.0.0.1" };
    const passed = request({ host: target.hostname, port: target.port, path: inner(asked.url), method: asked.method, headers }, (found) => {
      answer.writeHead(found.statusCode ?? 502, found.headers);
      found.pipe(answer);
    });
    passed.on("error", () => answer.destroy());
    answer.on("error", () => passed.destroy());
    asked.on("error", () => passed.destroy());
    asked.pipe(passed);
  });
  server.on("upgrade", (asked, socket, head) => {
    if (!sockets) return void socket.destroy();
    const lines = [`GET ${inner(asked.url ?? "")} HTTP/1.1`, ...Object.entries(asked.headers).map(([name, value]) => `${name}: ${value}`)];
    const passed = connect(Number(target.port), target.hostname, () => {
      passed.write(`${lines.join("\r\n")}\r\n\r\n`);
      passed.write(head);
      passed.pipe(socket).pipe(passed);
    });
    passed.on("error", () => socket.destroy());
    socket.on("error", () => passed.destroy());
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const address = server.address();
  return { server, url: `http://127.0.0.1:${typeof address === "object" && address ? address.port : 0}${PREFIX}` };
}

async function enter(url: string) {
  const context = await browser.newContext({ locale: "en-GB" });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  const outside: string[] = [];
  page.on("request", (asked) => {
    if (!asked.url().startsWith(url) && !/^(data|blob|ws)/.test(asked.url())) outside.push(asked.url());
  });
  await page.goto(`${url}/queue`);
  await page.getByLabel("API key").fill(yard.key);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { level: 1, name: "Queue" }).waitFor();
  return { page, context, outside };
}

test("below a path everything stays below it: page, parts, API, live link, a reload of a deep page", async () => {
  const { server, url } = await proxy(true);
  const { page, context, outside } = await enter(url);
  await page.locator('[data-state="live"]').waitFor();
  const job = await yard.submit({ name: "behind", command: "sleep 600" });
  await page.goto(`${url}/jobs/${job}`);
  await page.locator('[data-status="running"]').first().waitFor();
  await page.locator('[data-action="cancel"]').click();
  await page.locator(".el-message-box__btns .el-button--primary").click();
  await page.locator('[data-status="cancelled"]').first().waitFor();
  expect(outside).toEqual([]);
  await context.close();
  server.close();
});

test("where no socket gets through, the page asks now and then and says that it is not live", async () => {
  const { server, url } = await proxy(false);
  const { page, context } = await enter(url);
  const job = await yard.submit({ name: "polled", command: "sleep 600" });
  await page.goto(`${url}/jobs/${job}`);
  await page.locator('[data-status="running"]').first().waitFor();
  await yard.ask("POST", `/jobs/${job}/force-kill`);
  await page.locator('[data-status="cancelled"]').first().waitFor();
  expect(await page.locator("[data-state]").getAttribute("data-state")).not.toBe("live");
  await context.close();
  server.close();
});
