// Pictures of the main pages for the documents. Called by scripts/pictures/take.py with the server to look at.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { loggedIn, openChrome } from "../bench/chrome.mjs";
import { small } from "./palette.mjs";

const told = JSON.parse(process.argv[2]);
const { jobs } = told;
const DESK = { width: 1360, height: 860 };
const PHONE = { width: 390, height: 844 };
const only = process.env.PICTURES?.split(",");

const WANTED = [
  { name: "now", path: "/now" },
  { name: "now-zh", path: "/now", language: "zh" },
  { name: "now-dark", path: "/now", theme: "dark" },
  { name: "jobs", path: "/jobs" },
  { name: "jobs-dark-zh", path: "/jobs", language: "zh", theme: "dark" },
  { name: "job-repaired", path: `/jobs/${jobs.repaired}` },
  { name: "job-repaired-zh", path: `/jobs/${jobs.repaired}`, language: "zh" },
  { name: "job-failed", path: `/jobs/${jobs.failed}` },
  { name: "job-receipt", path: `/jobs/${jobs.cancelled}` },
  { name: "charts", path: `/jobs/${jobs.first}/charts` },
  { name: "charts-dark", path: `/jobs/${jobs.repaired}/charts`, theme: "dark" },
  { name: "log", path: `/jobs/${jobs.second}/logs` },
  { name: "queue", path: "/queue" },
  { name: "alerts", path: "/alerts" },
  { name: "machines", path: "/machines" },
  { name: "new-job", path: "/jobs?new" },
  { name: "phone", path: "/now", size: PHONE, scale: 2 },
  { name: "phone-job-dark", path: `/jobs/${jobs.repaired}`, size: PHONE, scale: 2, theme: "dark" },
  ...(process.env.EVERY_PAGE ? looks() : []),
];

/** More than the documents need, for whoever works on the page. */
function looks() {
  const pages = { system: `/jobs/${jobs.first}/system`, attempts: `/jobs/${jobs.repaired}/attempts`, checkpoints: `/jobs/${jobs.first}/checkpoints`, files: `/jobs/${jobs.first}/files`, config: `/jobs/${jobs.repaired}/config`, rules: "/alerts?show=rules", closed: "/alerts?show=closed", settings: "/settings", keys: "/settings/keys", targets: "/settings/notifications", about: "/settings/about", nothing: "/jobs?q=nothing", lost: "/nowhere" };
  const every = { ...pages, jobs: "/jobs", job: `/jobs/${jobs.repaired}`, charts: `/jobs/${jobs.first}/charts`, log: `/jobs/${jobs.second}/logs`, queue: "/queue", alerts: "/alerts", machines: "/machines", dialog: "/jobs?new" };
  return [
    ...Object.entries(pages).map(([name, path]) => ({ name: `x-${name}`, path })),
    ...Object.entries(every).map(([name, path]) => ({ name: `x-zh-${name}`, path, language: "zh", theme: "dark" })),
    ...Object.entries(every).map(([name, path]) => ({ name: `x-phone-${name}`, path, size: PHONE })),
  ];
}

const browser = await openChrome();
try {
  for (const wanted of WANTED) if (!only || only.some((name) => wanted.name.startsWith(name))) await take(wanted);
} finally {
  await browser.close();
}

async function take({ name, path, language = "en", theme = "light", size = DESK, scale = 1 }) {
  const context = await loggedIn(browser, told, { viewport: size, deviceScaleFactor: scale, locale: language === "zh" ? "zh-CN" : "en-GB", colorScheme: theme });
  const page = await context.newPage();
  await page.goto(told.url + path);
  await page.locator("h1").first().waitFor();
  await page.locator('[data-state="live"]').waitFor();
  await page.waitForFunction(() => !document.querySelector(".el-skeleton"));
  await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => undefined);
  await page.waitForTimeout(1200); // lines are drawn, and what fades in is there
  const picture = small(await page.screenshot({ animations: "disabled" }));
  writeFileSync(join(told.into, `${name}.png`), picture);
  console.log(`${name}.png`.padEnd(28), `${Math.round(picture.length / 1024)} kB`);
  await context.close();
}
