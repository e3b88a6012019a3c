import { mount } from "@vue/test-utils";
import { expect, test } from "vitest";
import SparkLine from "./SparkLine.vue";

const drawn = (values: (number | string | null)[]) => mount(SparkLine, { props: { values, label: "loss" } });

test("a value that is no number is a gap, not a zero", () => {
  const path = drawn([1, 2, "NaN", 3, 4]).find("path").attributes("d") ?? "";
  expect(path.match(/M/g)).toHaveLength(2);
  expect(path.match(/L/g)).toHaveLength(2);
});

test("one point is no curve", () => {
  expect(drawn([1]).find("svg").exists()).toBe(false);
});

test("a flat curve is drawn", () => {
  expect(drawn([2, 2, 2]).find("path").attributes("d")).not.toContain("NaN");
});
