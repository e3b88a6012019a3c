import { describe, expect, test } from "vitest";
import { folded, LogLines, type LogPage } from "./logLines";
import { restOf, RowMap } from "./logRows";

function page(logs: string[], total: number, more: Partial<LogPage> & { unfinished?: boolean; resume?: number } = {}): LogPage {
  const { unfinished = false, resume = 1000, ...rest } = more;
  return { logs, from: null, size: 1000, gaps: [], outline: { total, unfinished, resume, dropped: [] }, ...rest };
}

function begun(logs: string[], total: number, more: Parameters<typeof page>[2] = {}): LogLines {
  const lines = new LogLines();
  lines.begin(page(logs, total, more));
  return lines;
}

const all = (lines: LogLines) => Array.from({ length: lines.rows.count }, (_, row) => {
  const found = lines.rows.at(row);
  return found.kind === "gap" ? `gap ${found.lines}` : lines.text(found.key);
});

test.each([
  ["plain", "plain"],
  ["bar 1%\rbar 2%", "bar 2%"],
  ["bar 1%\rbar 2%\r", "bar 2%"],
  ["windows\r", "windows"],
  ["\r\r", ""],
  ["gone\r\r", "gone"],
])("text after the last carriage return replaces the line: %j", (raw, shown) => {
  expect(folded(raw)).toBe(shown);
});

describe("live text", () => {
  test("makes lines, and says which became whole", () => {
    const lines = begun(["a", "b"], 12);
    expect(lines.append("c\nd")).toEqual([12, 13]);
    expect(lines.append("e\nf\n")).toEqual([13, 15]);
    expect([12, 13, 14].map((number) => lines.text(number))).toEqual(["c", "de", "f"]);
    expect(lines.rows.count).toBe(15);
  });

  test("a trailing carriage return keeps the line until more comes", () => {
    const lines = begun([], 0);
    lines.append("bar 1%\r");
    expect(all(lines)).toEqual(["bar 1%"]);
    lines.append("bar 2%\r");
    expect(all(lines)).toEqual(["bar 2%"]);
    lines.append("\ndone\r");
    lines.append("\n");
    expect(all(lines)).toEqual(["bar 2%", "done"]);
  });

  test("what an unfinished line shows is told again and replaces it", () => {
    const lines = begun(["a", "half"], 2, { unfinished: true, resume: 996 });
    expect(all(lines)).toEqual(["a", "half"]);
    lines.append("half and whole\n");
    expect(all(lines)).toEqual(["a", "half and whole"]);
  });

  test("an unfinished line too long to be told again goes on", () => {
    const lines = begun(["x".repeat(100)], 1, { unfinished: true, resume: 1000 });
    lines.append("y\nz");
    expect(all(lines)).toEqual([`${"x".repeat(100)}y`, "z"]);
  });

  test("an endless line takes no endless memory, and a bar of hours neither", () => {
    const lines = begun([], 0);
    for (let turn = 0; turn < 50; turn += 1) lines.append("x".repeat(10_000));
    expect((lines.text(0) ?? "").length).toBeLessThan(17_000);
    for (let turn = 0; turn < 2000; turn += 1) lines.append(`\r${turn} of 2000`);
    expect(all(lines)).toEqual(["1999 of 2000"]);
  });
});

describe("dropped lines", () => {
  const dropped = [{ before: 100, after: 600, bytes: 3 << 20, from_byte: 50 }];

  test("are one row between the lines that are there", () => {
    const rows = new RowMap(1000, dropped);
    expect(rows.count).toBe(101 + 1 + 400);
    expect(rows.at(100)).toMatchObject({ number: 100 });
    expect(rows.at(101)).toMatchObject({ kind: "gap", lines: 499, bytes: 3 << 20 });
    expect(rows.at(102)).toMatchObject({ number: 600 });
    for (const number of [0, 100, 600, 999]) expect(rows.at(rows.rowOf(number))).toMatchObject({ number });
    expect(rows.rowOf(300)).toBe(101);
  });

  test("a line cut by a gap stands on both sides of it", () => {
    const rows = new RowMap(3, [{ before: 1, after: 1, bytes: 9, from_byte: 50 }]);
    expect(Array.from({ length: rows.count }, (_, row) => rows.at(row).key)).toEqual([0, 1, "gap 0", restOf(1), 2]);
    expect(rows.rowOf(1)).toBe(1);
    expect(rows.rowOf(2)).toBe(4);
  });

  test("a log whose beginning is gone", () => {
    const rows = new RowMap(500, [{ before: -1, after: 400, bytes: 9, from_byte: 0 }]);
    expect(rows.at(0)).toMatchObject({ kind: "gap", lines: 400 });
    expect(rows.at(1)).toMatchObject({ number: 400 });
    expect(rows.count).toBe(101);
  });

  test("pages over a gap find their numbers", () => {
    const lines = begun(["z"], 1000);
    const outline = { total: 1000, unfinished: false, resume: 1000, dropped };
    lines.put({ logs: ["y", "head", "[... gap ...]", "tail", "next"], from: 99, size: 1000, gaps: [{ at: 2, from_byte: 50 }], outline });
    expect([99, 100, 600, 601, 999].map((number) => lines.text(number))).toEqual(["y", "head", "tail", "next", "z"]);
    lines.put({ logs: ["[... gap ...]", "tail again"], from: 600, size: 1000, gaps: [{ at: 0, from_byte: 50 }], outline });
    expect(lines.text(600)).toBe("tail again");
  });

  test("of a tail only what is behind the gap has certain numbers", () => {
    const lines = begun(["before", "[... gap ...]", "b", "c"], 50, { gaps: [{ at: 1, from_byte: 50 }] });
    expect([48, 49].map((number) => lines.text(number))).toEqual(["b", "c"]);
    expect(lines.size).toBe(2);
  });
});

test("memory stays bounded, and keeps what is near", () => {
  const lines = begun([], 0);
  for (let turn = 0; turn < 100; turn += 1) lines.append("line\n".repeat(1000));
  lines.trim(99_999, 20_000);
  expect(lines.size).toBeLessThanOrEqual(20_000);
  expect(lines.text(99_999)).toBe("line");
  expect(lines.text(100)).toBeUndefined();
  expect(lines.rows.count).toBe(100_000);
});
