// Words that nothing says any more are found here.
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import en from "./en";

const SOURCE = resolve(__dirname, "..");

function keys(value: object, before = ""): string[] {
  return Object.entries(value).flatMap(([name, inner]) =>
    typeof inner === "object" && inner !== null ? keys(inner, `${before}${name}.`) : [before + name],
  );
}

const code = readdirSync(SOURCE, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.(vue|ts)$/.test(path) && !/^words\b|\.test\.ts$|schema\.d\.ts$/.test(path))
  .map((path) => readFileSync(join(SOURCE, path), "utf8"))
  .join("\n");

/** Keys that are put together: `job.tabs.${tab}` says what is in job.tabs, not what is deeper. */
const made = new Set([...code.matchAll(/`((?:\w+\.)+\w*)\$\{/g)].map((found) => found[1] as string));

const isQuoted = (text: string): boolean => ['"', "'", "`"].some((quote) => code.includes(`${quote}${text}${quote}`));
const all = keys(en);
const under = (before: string, key: string): boolean => key.startsWith(before) && !key.slice(before.length).includes(".");

/** Where some of a group are said by their whole name, the others must be named in a list of the code. */
const mixed = new Set([...made].filter((before) => all.some((key) => under(before, key) && isQuoted(key))));

function isSaid(key: string): boolean {
  if (isQuoted(key)) return true;
  return [...made].some((before) => under(before, key) && (!mixed.has(before) || isQuoted(key.slice(before.length))));
}

test("every word of the page is said somewhere", () => {
  expect(all.filter((key) => !isSaid(key))).toEqual([]);
});
