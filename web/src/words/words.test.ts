import { expect, test } from "vitest";
import en from "./en";
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
