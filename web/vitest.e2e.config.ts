import { defineConfig } from "vitest/config";

// Real servers, real jobs, a real browser: one file after the other.
export default defineConfig({
  test: { include: ["e2e/**/*.e2e.ts"], testTimeout: 240_000, hookTimeout: 240_000, fileParallelism: false },
});
