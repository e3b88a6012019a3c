import { describe, expect, test } from "vitest";
import { axisOf, broken, byName, csvOf, directionOf, drawable, factsOf, joined, placeOf, positions, smooth, timeAt } from "./curve";
import { add, MOST_POINTS, refine, seriesOf, thin, type Series } from "./series";

function line(values: (number | string)[], first = 0, attempt = 1): Series {
  return seriesOf(
    { steps: values.map((_, index) => first + index), times: values.map((_, index) => 1000 + first + index), values },
    attempt,
  );
}

describe("live points", () => {
  test("are added in order, those that come twice once", () => {
    const series = line([3, 2]);
    add(series, { steps: [1, 2], times: [1001, 1002], values: [2, "NaN"] }, 1);
    expect(series.steps).toEqual([0, 1, 2]);
    expect(series.values[2]).toBeNaN();
  });

  test("several of one step within an attempt all stay", () => {
    const series = line([3, 2]);
    add(series, { steps: [1, 1], times: [1001.5, 1001.7], values: [5, 6] }, 1);
    expect(series.values).toEqual([3, 2, 5, 6]);
  });

  test("that come late find their place", () => {
    const series = line([9, 8, 7]);
    add(series, { steps: [5, 4], times: [1005, 1004], values: [4, 5] }, 1);
    expect(series.values).toEqual([9, 8, 7, 5, 4]);
  });

  test("of steps done again replace those of the attempt before", () => {
    const series = line([9, 8, 7, 6, 5]);
    add(series, { steps: [2, 3], times: [2000, 2001], values: [70, 60] }, 2);
    expect(series.steps).toEqual([0, 1, 2, 3]);
    expect(series.values).toEqual([9, 8, 70, 60]);
    expect(series.attempt).toBe(2);
  });

  test("never fill the memory, and keep the extremes", () => {
    const series = line([]);
    for (let batch = 0; batch < 50; batch += 1) {
      const steps = Array.from({ length: 1000 }, (_, index) => batch * 1000 + index);
      const values = steps.map((step) => (step === 777 ? 1e9 : step === 888 ? "-Infinity" : Math.sin(step)));
      add(series, { steps, times: steps.map((step) => 1000 + step), values }, 1);
    }
    expect(series.values.length).toBeLessThanOrEqual(MOST_POINTS);
    expect(series.sampled).toBe(true);
    expect(Math.max(...series.values)).toBe(1e9);
    expect(series.values).toContain(-Infinity);
    expect(series.steps.at(-1)).toBe(49_999);
  });
});

test("thinning keeps lowest, highest, NaN, first and last of what was there", () => {
  const series = line(Array.from({ length: 10_000 }, (_, index) => (index === 5000 ? "NaN" : index === 123 ? -50 : index % 7)));
  thin(series, 500);
  expect(series.values.length).toBeLessThanOrEqual(510);
  expect(series.values.some(Number.isNaN)).toBe(true);
  expect(series.values).toContain(-50);
  expect([series.steps[0], series.steps.at(-1)]).toEqual([0, 9999]);
  expect([...series.steps]).toEqual([...series.steps].sort((one, other) => (one ?? 0) - (other ?? 0)));
});

test("every point of a part takes the place of a few", () => {
  const series = line([0, 1, 2, 3]);
  series.sampled = true;
  refine(series, seriesOf({ steps: [1, 2, 2], times: [1001, 1001.5, 1002], values: [10, 20, 30] }), 1001, 1002);
  expect(series.values).toEqual([0, 10, 20, 30, 3]);
  expect(series.whole).toEqual([1001, 1002]);
});

describe("smoothing", () => {
  test("has no pull of its beginning", () => {
    expect(smooth([5, 5, 5], 0.9).map((value) => Number(value?.toFixed(9)))).toEqual([5, 5, 5]);
    expect(smooth([1, 2, 3], 0)).toEqual([1, 2, 3]);
  });
  test("is not poisoned by what is no number", () => {
    const found = smooth([1, NaN, Infinity, null, 1], 0.5);
    expect(found.slice(1, 4)).toEqual([null, null, null]);
    expect(found[4]).toBeCloseTo(1);
  });
});

test("axes: steps where there are some, else the time since the beginning", () => {
  const series = line([1, 2, 3], 10);
  expect(positions(series, "step", 1000)).toEqual([10, 11, 12]);
  expect(positions(series, "relative", 1000)).toEqual([10, 11, 12]);
  expect(positions(series, "time", 1000)).toEqual([1010, 1011, 1012]);
  const without = seriesOf({ steps: [null], times: [5], values: [1] });
  expect(axisOf([series, without], "step")).toBe("relative");
  expect(axisOf([series], "step")).toBe("step");
  expect(placeOf(series, "step", 0, 1010.5)).toBe(11);
  expect(placeOf(series, "step", 0, 9999)).toBeNull();
  expect(timeAt(series, "step", 0, 12)).toBe(1012);
});

test("lines over one axis", () => {
  expect(
    joined([
      { x: [1, 3], y: [10, 30] },
      { x: [2, 3], y: [null, 33] },
    ]),
  ).toEqual([
    [1, 2, 3],
    [10, undefined, 30],
    [undefined, null, 33],
  ]);
  expect(drawable([1, -1, NaN, 0], true)).toEqual([1, null, null, null]);
});

test("between two attempts there is a gap", () => {
  expect(broken([1, 2, 8, 9], [10, 20, 80, 90], [7, 0, 8, 99])).toEqual({ x: [1, 2, 7, 8, 9], y: [10, 20, null, 80, 90] });
});

test("best and last", () => {
  const loss = factsOf("val_loss", line([3, "NaN", 1, 2]));
  expect(loss).toMatchObject({ best: 1, bestAt: 2, last: 2, high: 3, notFinite: 1, firstNotFinite: 1 });
  expect(factsOf("accuracy", line([0.1, 0.9, 0.5])).best).toBe(0.9);
  expect(factsOf("lr", line([0.1])).best).toBeNull();
  expect(factsOf("loss", line([]))).toMatchObject({ last: null, low: null, best: null });
  expect(directionOf("train/grad_norm")).toBeNull();
});

test("names in the order people look for them", () => {
  expect(["lr", "layer10", "layer9", "val_loss", "loss"].sort(byName)).toEqual(["loss", "val_loss", "layer9", "layer10", "lr"]);
});

test("CSV with every value as it was", () => {
  expect(csvOf([{ name: 'a,"b', series: line([1, "NaN"]) }])).toBe('metric,step,time,value\n"a,""b",0,1000,1\n"a,""b",1,1001,NaN\n');
});
