import { expect, test } from "vitest";
import { pieces, withoutAnsi } from "./ansi";
import { levelOf, timeLength } from "./logLevel";

const ESC = "\x1b[";

test("a plain line is one piece", () => {
  expect(pieces("hello")).toEqual([{ text: "hello", classes: [] }]);
  expect(pieces("")).toEqual([{ text: "", classes: [] }]);
});

test("colours and looks become classes", () => {
  expect(pieces(`${ESC}1;31mbad${ESC}0m then ${ESC}92mgood${ESC}39m.`)).toEqual([
    { text: "bad", classes: ["ansi-1", "ansi-bold"] },
    { text: " then ", classes: [] },
    { text: "good", classes: ["ansi-10"] },
    { text: ".", classes: [] },
  ]);
});

test("the 256 and the 16 million colours", () => {
  expect(pieces(`${ESC}38;5;196mx`)[0]).toEqual({ text: "x", classes: [], color: "rgb(255, 0, 0)" });
  expect(pieces(`${ESC}38;5;9mx`)[0]?.classes).toEqual(["ansi-9"]);
  expect(pieces(`${ESC}48;2;1;2;999mx`)[0]).toEqual({ text: "x", classes: [], background: "rgb(1, 2, 255)" });
  expect(pieces(`${ESC}38;5;240;1mx`)[0]).toMatchObject({ color: "rgb(88, 88, 88)", classes: ["ansi-bold"] });
});

test("inverse swaps", () => {
  expect(pieces(`${ESC}7mx`)[0]?.classes).toEqual(["ansi-on", "ansi-back-on"]);
  expect(pieces(`${ESC}31;7mx`)[0]?.classes).toEqual(["ansi-on", "ansi-back-1"]);
});

test("everything else a terminal would obey is left out", () => {
  const line = `\x1b]0;title\x07${ESC}2K${ESC}1Ga\x07b\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\${ESC}?25l\x1b(Bc\x1b`;
  expect(pieces(line).map((piece) => piece.text).join("")).toBe("ablinkc");
  expect(withoutAnsi(line)).toBe("ablinkc");
});

test("unfinished sequences do not swallow the text", () => {
  expect(withoutAnsi(`a${ESC}`)).toBe("a");
  expect(withoutAnsi("\ttabs stay")).toBe("\ttabs stay");
});

test.each([
  ["2026-01-02 03:04:05,678 ERROR something", "error"],
  ["Traceback (most recent call last):", "error"],
  ["torch.cuda.OutOfMemoryError: CUDA out of memory", "error"],
  ["[WARNING] careful", "warning"],
  ["x.py:3: UserWarning: old", "warning"],
  ["DEBUG: detail", "debug"],
  ["step 10 loss 0.3 error_rate 0.1", ""],
  ["an error in lower case is talk", ""],
])("levels: %s", (line, level) => {
  expect(levelOf(line)).toBe(level);
});

test.each([
  ["2026-01-02 03:04:05,678 INFO x", 23],
  ["2026-01-02T03:04:05Z x", 20],
  ["[2026-01-02 03:04:05] x", 21],
  ["03:04:05 x", 8],
  ["step 03:04:05", 0],
  ["2026 is a year", 0],
])("the time a line begins with: %s", (line, length) => {
  expect(timeLength(line)).toBe(length);
});
