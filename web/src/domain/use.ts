// What a job used against what it asked for.
import type { Schemas } from "@/api/client";
import { numberOf, type Points } from "./series";

type Now = Schemas["UseAnswer"];

export interface Use {
  cores: number | null;
  coresGiven: number;
  memoryGb: number | null;
  memoryGbGiven: number;
  gpuPercent: number | null;
  gpuMemoryPercent: number | null;
  atMost: boolean; // the highest of the whole run, not what it is now
}

/** What was measured of an attempt, for its peaks. */
export const MEASURED = ["system.cpu_percent", "system.pss_mb", "system.rss_mb", "gpu.util", "gpu.memory_percent"];

export function usedNow(now: Now): Use {
  return {
    cores: now.cpu_cores,
    coresGiven: now.cpu_cores_given,
    memoryGb: now.memory_gb,
    memoryGbGiven: now.memory_gb_given,
    gpuPercent: now.gpu_util,
    gpuMemoryPercent: now.gpu_memory_percent,
    atMost: false,
  };
}

/** The peaks of a run that has ended. */
export function usedAtMost(series: Readonly<Record<string, Points>>, asked: { cpu_cores: number; memory_gb: number }): Use {
  const highest = (name: string): number | null => {
    const known = (series[name]?.values ?? []).map(numberOf).filter(Number.isFinite);
    return known.length ? Math.max(...known) : null;
  };
  const part = (value: number | null, whole: number): number | null => (value === null ? null : value / whole);
  return {
    cores: part(highest("system.cpu_percent"), 100),
    coresGiven: asked.cpu_cores,
    memoryGb: part(highest("system.pss_mb") ?? highest("system.rss_mb"), 1024),
    memoryGbGiven: asked.memory_gb,
    gpuPercent: highest("gpu.util"),
    gpuMemoryPercent: highest("gpu.memory_percent"),
    atMost: true,
  };
}
