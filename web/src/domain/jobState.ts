// Status -> colour, icon and allowed actions: the only such table.
import type { Schemas } from "@/api/client";

export type Status = Schemas["JobAnswer"]["status"];
export type Tone = "primary" | "success" | "warning" | "danger" | "info";
export type Action = "cancel" | "forceKill" | "retry" | "hold" | "release" | "delete";

interface State {
  tone: Tone;
  icon: string; // never by colour alone
  ended: boolean;
  actions: readonly Action[];
}

export const STATES: Record<Status, State> = {
  pending: { tone: "info", icon: "◷", ended: false, actions: ["cancel", "hold"] },
  scheduled: { tone: "primary", icon: "◔", ended: false, actions: ["cancel"] },
  running: { tone: "primary", icon: "▶", ended: false, actions: ["cancel"] },
  retrying: { tone: "warning", icon: "↻", ended: false, actions: ["cancel", "hold"] },
  cancelling: { tone: "warning", icon: "◌", ended: false, actions: ["forceKill"] },
  completed: { tone: "success", icon: "✓", ended: true, actions: ["retry", "delete"] },
  failed: { tone: "danger", icon: "✕", ended: true, actions: ["retry", "delete"] },
  cancelled: { tone: "info", icon: "⊘", ended: true, actions: ["retry", "delete"] },
};

export const STATUSES = Object.keys(STATES) as Status[];

export function isEnded(status: Status): boolean {
  return STATES[status].ended;
}

export function actionsOf(job: { status: Status; hold?: boolean }): Action[] {
  const found = [...STATES[job.status].actions];
  return found.map((action) => (action === "hold" && job.hold ? "release" : action));
}

export type Level = "ok" | "warning" | "error" | "critical" | "unknown";

export const LEVELS: Record<Level, { tone: Tone; icon: string }> = {
  ok: { tone: "success", icon: "●" },
  warning: { tone: "warning", icon: "▲" },
  error: { tone: "danger", icon: "■" },
  critical: { tone: "danger", icon: "◆" },
  unknown: { tone: "info", icon: "○" },
};
