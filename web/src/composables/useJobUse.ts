// What a job uses while it runs, and the most it used once it has ended.
import { onScopeDispose, shallowRef, watch } from "vue";
import { api, body } from "@/api/client";
import { isEnded } from "@/domain/jobState";
import { MEASURED, usedAtMost, usedNow, type Use } from "@/domain/use";
import type { Job } from "./useJob";
import { askMetrics } from "./useMetrics";

const EVERY_MS = 5000;
const POINTS = 500; // the highest of every stretch is among them

export function useJobUse(job: () => Job) {
  const use = shallowRef<Use | null>(null);

  async function look(): Promise<void> {
    const { job_id: ref, status } = job();
    if (document.hidden || status !== "running") return;
    const asked = api.GET("/api/v1/training/monitor/job/{ref}", { params: { path: { ref } } });
    const found = await body(asked).catch(() => null); // the next look tries again
    if (found?.use && job().job_id === ref && !isEnded(job().status)) use.value = usedNow(found.use);
  }

  async function lookBack(): Promise<void> {
    const { job_id: ref, cpu_cores, memory_gb } = job();
    const found = await askMetrics(ref, { keys: MEASURED, points: POINTS }).catch(() => null); // the rest of the page is there without
    if (found && job().job_id === ref) use.value = usedAtMost(found, { cpu_cores, memory_gb });
  }

  const timer = setInterval(() => void look(), EVERY_MS);
  onScopeDispose(() => clearInterval(timer));
  watch(() => [job().job_id, job().status].join(), () => void (isEnded(job().status) ? lookBack() : look()), { immediate: true });
  return use;
}
