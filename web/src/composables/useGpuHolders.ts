// Who has a GPU, said the same way wherever one is shown: our jobs by name, others, a fence, or nobody.
import { useI18n } from "vue-i18n";
import { useSystemStore, type SystemStatus } from "@/stores/system";

export type Gpu = SystemStatus["gpus"][number];

export interface GpuHolders {
  jobs: { id: string; name: string }[];
  others: string[]; // processes that are not ours, another server
  fence: string | null;
  free: boolean; // a job could be given it
}

export function useGpuHolders() {
  const { t } = useI18n();
  const system = useSystemStore();

  function named(given: Gpu["jobs"][number]): { id: string; name: string } {
    const id = given.job_id ?? given.attempt_id;
    return { id, name: system.status?.running.find((job) => job.job_id === id)?.name ?? id };
  }

  return function whoHas(gpu: Gpu): GpuHolders {
    const others = gpu.holders.map((holder) => t("machines.foreign", { ...holder }));
    if (gpu.locked_by_other_server) others.push(t("machines.otherServer"));
    const fence = gpu.fenced ? t("machines.fenced", { reason: gpu.fence_reason || "–" }) : null;
    const jobs = gpu.jobs.map(named);
    return { jobs, others, fence, free: !jobs.length && !others.length && !fence };
  };
}
