import { expect, test } from "vitest";
import { byRank, rankOf } from "./curve";

test("what other ranks report belongs to the chart of the first", () => {
  const found = byRank(["loss", "loss.rank10", "loss.rank2", "lr.rank1", "a.rank", "eval.rank1", "eval"]);
  expect(found).toEqual(new Map([["loss", ["loss.rank2", "loss.rank10"]], ["eval", ["eval.rank1"]]]));
  expect(rankOf("loss.rank12")).toEqual({ base: "loss", rank: 12 });
  expect(rankOf("loss.ranked")).toBeNull();
  expect(rankOf(".rank1")).toBeNull();
});
