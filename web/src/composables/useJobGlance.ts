// What the overview of a job shows of other tabs: which curve says most, and the newest checkpoint.
import { computed, onScopeDispose, shallowRef, watch } from "vue";
import { api, body, type Schemas } from "@/api/client";
import { Problem } from "@/api/problem";
import { mainOf } from "@/domain/curve";
import { isEnded } from "@/domain/jobState";
import type { Job } from "./useJob";
import { askMetrics } from "./useMetrics";

export type Checkpoint = Schemas["CheckpointAnswer"];

const EVERY_MS = 30_000; // checkpoints of a running job are looked for so often

export function useJobGlance(job: () => Job) {
  const kept = shallowRef<string[]>([]); // names that the server has points of
  const checkpoint = shallowRef<Checkpoint | null>(null);
  const main = computed(() => mainOf([...new Set([...kept.value, ...Object.keys(job().metrics)])]));
  let turn = 0;

  async function quietly<T>(asked: Promise<T>): Promise<T | null> {
    try {
      return await asked;
    } catch (refused) {
      if (refused instanceof Problem) return null;
      throw refused;
    }
  }

  async function look(): Promise<void> {
    const mine = (turn += 1);
    const ref = job().job_id;
    const [named, saved] = await Promise.all([
      quietly(askMetrics(ref, { points: 1 })),
      quietly(body(api.GET("/api/v1/training/jobs/{ref}/checkpoints", { params: { path: { ref } } }))),
    ]);
    if (mine !== turn) return;
    kept.value = Object.keys(named ?? {});
    checkpoint.value = (saved as Checkpoint[] | null)?.filter((one) => one.verdict !== "gone").at(-1) ?? null;
  }

  const timer = setInterval(() => {
    if (!document.hidden && !isEnded(job().status)) void look();
  }, EVERY_MS);
  onScopeDispose(() => clearInterval(timer));
  watch(() => [job().job_id, job().status, job().attempt_number].join(), () => void look(), { immediate: true });
  return { main, checkpoint };
}
