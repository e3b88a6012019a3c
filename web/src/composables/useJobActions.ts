// What a person may do to a job, each with its question and its answer.
import { ElMessage } from "element-plus/es/components/message/index";
import { ElMessageBox } from "element-plus/es/components/message-box/index";
import "element-plus/es/components/message/style/css";
import "element-plus/es/components/message-box/style/css";
import { useI18n } from "vue-i18n";
import { api } from "@/api/client";
import { Problem } from "@/api/problem";
import { span, since } from "@/domain/duration";
import type { Action } from "@/domain/jobState";
import { wording } from "@/i18n";
import type { JobRow } from "@/stores/jobs";

const ASKED_FIRST = new Set<Action>(["cancel", "forceKill", "delete"]);
const REF = (job: JobRow) => ({ params: { path: { ref: job.job_id } } });

const CALLS: Record<Action, (job: JobRow) => Promise<unknown>> = {
  cancel: (job) => api.POST("/api/v1/training/jobs/{ref}/cancel", REF(job)),
  forceKill: (job) => api.POST("/api/v1/training/jobs/{ref}/force-kill", REF(job)),
  retry: (job) => api.POST("/api/v1/training/jobs/{ref}/retry", REF(job)),
  hold: (job) => api.POST("/api/v1/training/jobs/{ref}/hold", REF(job)),
  release: (job) => api.POST("/api/v1/training/jobs/{ref}/release", REF(job)),
  delete: (job) => api.DELETE("/api/v1/training/jobs/{ref}", REF(job)),
};

/** The problem in the reader's language, as a toast. */
export function complain(problem: unknown): void {
  if (!(problem instanceof Problem)) throw problem;
  ElMessage({
    type: "error",
    message: wording.value.error(problem.code, problem.params, problem.message),
    showClose: true,
    duration: 8000,
  });
}

export function useJobActions() {
  const { t } = useI18n();

  async function confirmed(action: Action, job: JobRow): Promise<boolean> {
    if (!ASKED_FIRST.has(action)) return true;
    const running =
      action === "cancel" && job.started_at ? ` ${t("confirm.cancelCost", { span: span(since(job.started_at, Date.now())) })}` : "";
    try {
      await ElMessageBox.confirm(t(`confirm.${action}`, { name: job.name }) + running, {
        type: "warning",
        confirmButtonText: t(`action.${action}`),
        cancelButtonText: t("action.back"),
      });
      return true;
    } catch {
      return false;
    }
  }

  /** True when it was done. */
  async function act(action: Action, job: JobRow): Promise<boolean> {
    if (!(await confirmed(action, job))) return false;
    try {
      await CALLS[action](job);
    } catch (problem) {
      complain(problem);
      return false;
    }
    ElMessage({ type: "success", message: t(`done.${action}`, { name: job.name }) });
    return true;
  }

  return { act };
}
