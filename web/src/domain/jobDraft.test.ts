import { expect, test } from "vitest";
import { commandText, draftOf, readPairs, withField, writePairs } from "./jobDraft";

test("a clone takes wishes, not results, and no masked secret", () => {
  const job = { name: "a", status: "failed", cpu_cores: 2, ports: 0, labels: {}, env_vars: { A: "1", TOKEN: "***" }, job_type: "single" };
  expect(draftOf(job)).toEqual({ name: "a", cpu_cores: 2, env_vars: { A: "1" } });
});

test("an emptied field is left out", () => {
  expect(withField({ name: "a", image: "b" }, "image", "")).toEqual({ name: "a" });
});

test("pairs keep what stands behind the first equals sign", () => {
  expect(readPairs("A=1=2\nnothing\n B =x")).toEqual({ A: "1=2", B: "x" });
  expect(writePairs({ A: "1", B: 2 })).toBe("A=1\nB=2");
});

test("a command given as a list can be pasted into a shell", () => {
  expect(commandText(["python", "-c", "print('a b')"])).toBe("python -c 'print('\\''a b'\\'')'");
});
