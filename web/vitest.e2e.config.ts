import { defineConfig } from "vitest/config";

// Real servers, real jobs, a real browser: one file after the other.
export default defineConfig({
  test: { include: ["e2e/**/*.e2e.ts"], testTimeout: 60_000, hookTimeout: 60_000, fileParallelism: false },
});
