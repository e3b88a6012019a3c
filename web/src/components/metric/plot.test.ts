import { expect, test } from "vitest";
import { seriesOptions } from "./plot";

const PALETTE = ["#112233", "#445566"];

test("earlier attempts are faint lines in the colour of theirs, in the first columns", () => {
  const found = seriesOptions({ lines: 2, ghosts: [0, 0, 1], smoothed: false }, PALETTE);
  expect(found.slice(1).map((one) => one.stroke)).toEqual([
    "rgb(17 34 51 / 40%)", "rgb(17 34 51 / 40%)", "rgb(68 85 102 / 40%)", ...PALETTE,
  ]);
});

test("a smoothed line has its own faint one beneath it", () => {
  const found = seriesOptions({ lines: 1, ghosts: [], smoothed: true }, PALETTE);
  expect(found.slice(1).map((one) => one.stroke)).toEqual(["rgb(17 34 51 / 30%)", "#112233"]);
});
