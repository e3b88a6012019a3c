import { expect, test } from "vitest";
import en from "./en";
import serverEnglish from "./server/en.json";
import serverChinese from "./server/zh.json";
import zh from "./zh";

function keys(value: object, before = ""): string[] {
  return Object.entries(value).flatMap(([name, inner]) =>
    typeof inner === "object" && inner !== null ? keys(inner, `${before}${name}.`) : [before + name],
  );
}

function holes(text: unknown): string[] {
  return [...String(text).matchAll(/\{(\w+)\}/g)].map((found) => found[1] ?? "").sort();
}

function at(value: any, path: string): unknown {
  return path.split(".").reduce((inner, name) => inner[name], value);
}

test("both languages say the same things", () => {
  expect(keys(zh).sort()).toEqual(keys(en).sort());
});

test("both languages use the same parameters", () => {
  for (const key of keys(en)) expect(new Set(holes(at(zh, key))), key).toEqual(new Set(holes(at(en, key))));
});

test("beside a button no command is told", () => {
  for (const reasons of [serverEnglish.reasons, serverChinese.reasons]) {
    for (const [code, text] of Object.entries(reasons)) expect(text, code).not.toContain("runyard ");
  }
});
