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
  let turn = 0;
  let heard = 0; // messages: newer than an answer to what was asked before them
  let stories = 0;
  let told = 0; // the newest of them that is shown

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
    const [mine, before] = [(turn += 1), heard];
    try {
      const found = (await body(api.GET("/api/v1/training/jobs/{ref}", at.value))) as Job;
      if (mine !== turn) return;
      if (before === heard) keep(found);
      problem.value = null;
      await loadStory();
    } catch (refused) {
      if (!(refused instanceof Problem)) throw refused;
      if (mine !== turn) return;
      problem.value = refused;
      if (refused.code === "job_not_found") job.value = undefined; // deleted while nobody looked
    }
  }

  /** For the title of a hidden tab. */
  async function glance(): Promise<void> {
    const before = heard;
    const found = await quietly(body(api.GET("/api/v1/training/jobs/{ref}", at.value)));
    if (found && before === heard) keep(found as Job);
  }

  async function loadStory(): Promise<void> {
    const mine = (stories += 1);
    const [chapters, tried, explained] = await Promise.all([
      quietly(body(api.GET("/api/v1/training/jobs/{ref}/story", at.value))),
      quietly(body(api.GET("/api/v1/training/jobs/{ref}/attempts", at.value))),
      quietly(body(api.GET("/api/v1/training/jobs/{ref}/explain", at.value))),
    ]);
    if (mine < told) return;
    told = mine;
    story.value = (chapters as Chapter[]) ?? [];
    attempts.value = (tried as Attempt[]) ?? [];
    explanation.value = explained;
    const left =
      job.value && isEnded(job.value.status) ? await quietly(body(api.GET("/api/v1/training/jobs/{ref}/receipt", at.value))) : null;
    if (mine === told) receipt.value = left;
  }

  function hear(events: LiveEvent[]): void {
    const newest = events.filter((event) => event.type === "job").at(-1);
    if (newest) {
      heard += 1;
      keep(newest as unknown as Job);
    }
    if (events.some((event) => event.type === "event")) void loadStory();
    if (events.some((event) => event.type === "deleted"))
      [job.value, problem.value] = [undefined, new Problem(404, { code: "job_not_found", message: "", params: { job: ref() } })];
  }

  watch(
    ref,
    (id) => {
      leave();
      job.value = undefined;
      told = stories += 1; // what was asked about the one before is not for this page
      leave = useLink().subscribe(`job:${id}`, { events: hear, reload: () => void load(), glance: () => void glance() });
      void load();
    },
    { immediate: true },
  );

  return { job, story, attempts, explanation, receipt, problem, load };
}
