import { expect, test } from "vitest";
import { usedAtMost } from "./use";

const points = (...values: (number | string)[]) => ({ steps: values.map(() => null), times: values.map((_, index) => index), values });

test("of a run that has ended the peaks are told, against what was asked for", () => {
  const series = { "system.cpu_percent": points(50, 320, "NaN"), "system.pss_mb": points(512, 2048), "gpu.util": points(97, 3) };
  expect(usedAtMost(series, { cpu_cores: 4, memory_gb: 8 })).toEqual({
    cores: 3.2, coresGiven: 4, memoryGb: 2, memoryGbGiven: 8, gpuPercent: 97, gpuMemoryPercent: null, atMost: true,
  });
});

test("without the shared part of memory the resident one is told; what was not measured is null", () => {
  const used = usedAtMost({ "system.rss_mb": points(1024) }, { cpu_cores: 1, memory_gb: 1 });
  expect(used).toMatchObject({ cores: null, memoryGb: 1 });
});
