// GPUs as a server with some would tell them: one of each kind of holder.
import type { SystemStatus } from "@/stores/system";

type Gpu = SystemStatus["gpus"][number];

export function gpu(index: number, told: Partial<Gpu> = {}): Gpu {
  const known = { node_id: "node-1", index, uuid: `GPU-${index}`, name: "H100", memory_mb: 81_559, used_mb: 0, group: "", fenced: false, fence_reason: null };
  return { ...known, locked_by_other_server: false, holders: [], jobs: [], metrics: { util: 93.4, memory_percent: 51 }, at: null, ...told } as Gpu;
}

export const GPUS = [
  gpu(0, { jobs: [{ job_id: "job-a", attempt_id: "job-a.1", share: 1 }] }),
  gpu(1, { holders: [{ pid: 4711, user: "eve", name: "python" }] }),
  gpu(2, { fenced: true, fence_reason: "it is too hot" }),
  gpu(3, { locked_by_other_server: true }),
  gpu(4),
];

export const STATUS = { gpus: GPUS, running: [{ job_id: "job-a", name: "llama" }], counts: {}, nodes: [] } as unknown as SystemStatus;
