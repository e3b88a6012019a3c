// One job with its story, fresh for as long as its page is open.
import { computed, shallowRef, watch } from "vue";
import { api, body, type Schemas } from "@/api/client";
import type { LiveEvent } from "@/api/live";
import { Problem } from "@/api/problem";
import { isEnded } from "@/domain/jobState";
import type { Chapter } from "@/domain/story";
import { useJobs } from "@/stores/jobs";
import { useLink } from "@/stores/link";

export type Job = Schemas["JobAnswer"];
export type Attempt = Schemas["AttemptAnswer"];

export function useJob(ref: () => string) {
  const jobs = useJobs();
  const job = shallowRef<Job>();
  const story = shallowRef<Chapter[]>([]);
  const attempts = shallowRef<Attempt[]>([]);
  const explanation = shallowRef<any>(null);
  const receipt = shallowRef<any>(null);
  const problem = shallowRef<Problem | null>(null);
  const at = computed(() => ({ params: { path: { ref: ref() } } }));
  let leave: () => void = () => undefined;

  async function quietly<T>(asked: Promise<T>): Promise<T | null> {
    try {
      return await asked;
    } catch (refused) {
      if (refused instanceof Problem) return null;
      throw refused;
    }
  }

  function keep(found: Job): void {
    job.value = found;
    jobs.keep([found as any]);
  }

  async function load(): Promise<void> {
    try {
      keep((await body(api.GET("/api/v1/training/jobs/{ref}", at.value))) as Job);
      problem.value = null;
      await loadStory();
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      problem.value = refused;
      if (refused.code === "job_not_found") job.value = undefined; // deleted while nobody looked
    }
  }

  async function loadStory(): Promise<void> {
    const [told, tried, explained] = await Promise.all([
      quietly(body(api.GET("/api/v1/training/jobs/{ref}/story", at.value))),
      quietly(body(api.GET("/api/v1/training/jobs/{ref}/attempts", at.value))),
      quietly(body(api.GET("/api/v1/training/jobs/{ref}/explain", at.value))),
    ]);
    story.value = (told as Chapter[]) ?? [];
    attempts.value = (tried as Attempt[]) ?? [];
    explanation.value = explained;
    receipt.value = job.value && isEnded(job.value.status) ? await quietly(body(api.GET("/api/v1/training/jobs/{ref}/receipt", at.value))) : null;
  }

  function hear(told: LiveEvent[]): void {
    const newest = told.filter((event) => event.type === "job").at(-1);
    if (newest) keep(newest as unknown as Job);
    if (told.some((event) => event.type === "event")) void loadStory();
    if (told.some((event) => event.type === "deleted")) [job.value, problem.value] = [undefined, new Problem(404, { code: "job_not_found", message: "", params: { job: ref() } })];
  }

  watch(ref, (id) => {
    leave();
    job.value = undefined;
    leave = useLink().subscribe(`job:${id}`, { events: hear, reload: () => void load() });
    void load();
  }, { immediate: true });

  return { job, story, attempts, explanation, receipt, problem, load };
}
