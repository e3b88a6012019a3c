import { expect, test } from "vitest";
import { bandOf, mainOf } from "./curve";
import { seriesOf } from "./series";

// Attempt 1 went wrong at step 250 (time 250) and was stopped at 260; attempt 2 did it again from step 200, at time 300.
const repaired = seriesOf({
  steps: [0, 100, 199, 200, 250, 400],
  times: [0, 100, 199, 300, 350, 500],
  values: [5, 4, 3, 3, 2, 1],
});
const trouble = { from: 250, to: 260, step: 250 };

test("over steps a trouble is at the step it names, though a later attempt did that step again", () => {
  expect(bandOf(repaired, "step", 0, trouble)).toEqual([250, 250]);
});

test("over time it is when it was", () => {
  expect(bandOf(repaired, "time", 0, trouble)).toEqual([250, 260]);
  expect(bandOf(repaired, "relative", 100, trouble)).toEqual([150, 160]);
});

test("a trouble that goes on reaches to the last point; one without a step is placed by its time", () => {
  expect(bandOf(repaired, "step", 0, { from: 340, to: 900, step: null })).toEqual([250, 400]);
  expect(bandOf(repaired, "step", 0, { from: 900, to: 950, step: null })).toBeNull();
});

test("the metric that says most is the one that lists show", () => {
  expect(mainOf(["lr", "system.cpu_percent", "val_loss", "loss.rank1", "loss"])).toBe("loss");
  expect(mainOf(["grad_norm", "train/zeta", "train/my_loss", "alpha"])).toBe("train/my_loss");
  expect(mainOf(["lr", "gpu.util"])).toBeNull();
});
