import { expect, test } from "vitest";
import { spanUntil } from "./duration";

const NOW = Date.parse("2026-01-01T00:00:00Z");

test("the time until a moment falls with the clock, and is never less than none", () => {
  expect(spanUntil("2026-01-01T00:00:50Z", NOW)).toBe("50 s");
  expect(spanUntil("2026-01-01T00:00:50Z", NOW + 10_000)).toBe("40 s");
  expect(spanUntil("2026-01-01T00:00:50Z", NOW + 90_000)).toBe("0 s");
  expect(spanUntil(null, NOW)).toBe("?");
});
