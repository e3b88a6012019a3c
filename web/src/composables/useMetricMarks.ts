// What happened to a job, for its charts: when attempts began, and what was found wrong with it.
import { computed, shallowRef } from "vue";
import { useI18n } from "vue-i18n";
import { api, body, type Schemas } from "@/api/client";
import type { Moment, Trouble } from "@/domain/chart";
import { moment } from "@/domain/duration";
import { useLink } from "@/stores/link";
import type { Attempt } from "./useJob";
import { useNow } from "./useNow";

type MarkedAttempt = Pick<Attempt, "number" | "started_at" | "created_at">;
const STILL_S = 5; // an open alert grows with the time, not with every second

export function useMetricMarks(jobRef: string, attempts: () => readonly MarkedAttempt[]) {
  const { t } = useI18n();
  const alerts = shallowRef<Schemas["AlertAnswer"][]>([]);
  const now = useNow();
  const seconds = (value: string | null | undefined): number | null => {
    const found = moment(value);
    return found === null ? null : found / 1000;
  };

  async function load(): Promise<void> {
    const asked = api.GET("/api/v1/training/alerts", { params: { query: { job: jobRef, limit: 200 } } });
    alerts.value = await body(asked).catch(() => alerts.value); // charts are worth seeing without them
  }

  function stepOf(alert: Schemas["AlertAnswer"]): number | null {
    const step = alert.params.bad_step ?? alert.params.step;
    return typeof step === "number" ? step : null;
  }

  /** Found somewhat later than it happened: the step it names is where the band begins. */
  function begun(alert: Schemas["AlertAnswer"]): number | null {
    const known = (alert.evidence?.series ?? {}) as Record<string, { steps: (number | null)[]; times: number[] }>;
    const series = known[String(alert.params.metric)];
    const at = series?.steps.indexOf(stepOf(alert)) ?? -1;
    return at < 0 ? null : (series?.times[at] ?? null);
  }

  const moments = computed<Moment[]>(() =>
    attempts().flatMap((attempt) => {
      const at = seconds(attempt.started_at ?? attempt.created_at);
      return attempt.number < 2 || at === null ? [] : [{ at, label: t("attemptOf", { number: attempt.number }) }];
    }),
  );
  const origin = computed(() => {
    const found = attempts().flatMap((attempt) => seconds(attempt.started_at ?? attempt.created_at) ?? []);
    return found.length ? Math.min(...found) : null;
  });
  const slowNow = computed(() => Math.floor(now.value / 1000 / STILL_S) * STILL_S);
  const troubles = computed<Trouble[]>(() =>
    alerts.value.map((alert) => ({
      from: begun(alert) ?? seconds(alert.opened_at) ?? 0,
      to: seconds(alert.closed_at) ?? (alert.status === "closed" ? (seconds(alert.seen_at) ?? 0) : slowNow.value),
      step: stepOf(alert),
      bad: alert.level !== "warning",
      names: Object.keys((alert.evidence?.series as object | undefined) ?? {}),
    })),
  );

  useLink().subscribe("alerts", {
    events: (events) => events.some((event) => event.job_id === jobRef) && void load(),
    reload: () => void load(),
  });
  return { moments, origin, troubles, alerts };
}
