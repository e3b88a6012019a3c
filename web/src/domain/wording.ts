// Codes with parameters into sentences; the same wording as the command line (words/server is made from it).
import { gigabytes, number, size } from "./amounts";
import { clock, span } from "./duration";

type Params = Record<string, any>;
export interface Coded {
  code?: string | null;
  params?: Params | null;
}
type Table = Record<string, string>;

export interface ServerWords {
  statuses: Table;
  nouns: Table;
  reasons: Table;
  alerts: Table;
  deliveryErrors: Table;
  warnings: Table;
  errors: Table;
  messages: Table;
  diagnoses: Table;
  plans: Table;
  giveUps: Table;
  next: Table;
  story: Table;
  findings: Table;
}

const SPANS = ["seconds", "lease_s", "budget_s", "exhausted_in_s", "full_in_s", "limit_s", "ready_timeout_s"];

/** A newer server may send what this page does not know: say "?" instead of falling over. */
function fill(template: string, params: Params): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) =>
    params[name] === undefined || params[name] === null ? "?" : String(params[name]),
  );
}

function plain(value: unknown): string {
  if (typeof value === "number") return number(value);
  if (Array.isArray(value)) return value.map(plain).join(", ");
  if (value && typeof value === "object") return JSON.stringify(value);
  return String(value);
}

export class Wording {
  constructor(
    readonly words: ServerWords,
    readonly language: string,
  ) {}

  status(status: string): string {
    return this.words.statuses[status] ?? status;
  }

  reason(given: Coded | null | undefined): string {
    if (!given?.code) return "";
    const { code } = given;
    const params = given.params ?? {};
    if (params.stage === "preflight" && (code === "preparing" || code === "preparation_failed")) return this.preflight(code, params);
    // A job of several nodes may need more of them than there are, or larger ones.
    let worded = code === "never_fits" && "each" in params ? "never_fits_nodes" : code;
    if (code === "start_failed" && ["container", "pull"].includes(params.step)) worded = `${code}_${params.step}`;
    const template = this.words.reasons[worded];
    if (template !== undefined) return this.added(code, params, fill(template, this.readable(code, params)));
    return this.gaveUp(code, params) ?? this.unknown(code, params);
  }

  alert(given: Coded): string {
    const code = given.code ?? "";
    const template = this.words.alerts[code];
    return template === undefined ? this.reason(given) : fill(template, this.readable(code, given.params ?? {}));
  }

  warning(given: Coded): string {
    const template = this.words.warnings[given.code ?? ""];
    return template === undefined ? this.reason(given) : fill(template, given.params ?? {});
  }

  deliveryError(given: Coded | null | undefined): string {
    const template = this.words.deliveryErrors[given?.code ?? ""];
    return template === undefined ? this.reason(given) : fill(template, given?.params ?? {});
  }

  /** Of a refused request: the server's own English says most. */
  error(code: string, params: Params, fallback: string): string {
    const template = this.words.errors[code];
    return template === undefined || (this.language === "en" && fallback) ? fallback || code : fill(template, params);
  }

  diagnosis(explanation: Coded | null | undefined, category?: string | null): string {
    const known = this.words.diagnoses;
    return known[explanation?.code ?? ""] ?? known[category ?? ""] ?? category ?? "";
  }

  plan(given: Coded | null | undefined): string {
    const code = given?.code ?? "";
    const template = this.words.plans[code] ?? this.words.giveUps[code];
    return template === undefined ? code : fill(template, given?.params ?? {});
  }

  next(given: Coded | null | undefined, job: string): string {
    const template = this.words.next[given?.code ?? ""];
    if (template === undefined) return "";
    const params = { ...given?.params };
    if (params.at !== undefined) params.at = clock(params.at, this.language);
    return fill(template, { ...params, job });
  }

  finding(given: Coded): string {
    const params: Params = { ...given.params };
    for (const name of Object.keys(params)) {
      if (name.endsWith("_bytes") && typeof params[name] === "number") params[name] = size(params[name]);
    }
    if (Array.isArray(params.names)) params.names = params.names.join(", ");
    params.where ??= params.path ? (params.line ? `${params.path}:${params.line}` : params.path) : "-m";
    params.said ??= params.signal ?? params.exit_code;
    const template = this.words.findings[given.code ?? ""];
    return template === undefined ? this.unknown(given.code ?? "", given.params ?? {}) : fill(template, params);
  }

  /** What earlier runs of the same job used at most. */
  suggestion(given: { from_job: string; memory_gb: number | null; gpu_memory_mb: number | null; seconds: number | null }): string {
    const used = [
      given.memory_gb === null ? "" : this.message("used_memory", { value: number(given.memory_gb) }),
      given.gpu_memory_mb === null ? "" : this.message("used_gpu_memory", { value: given.gpu_memory_mb }),
      given.seconds === null ? "" : this.message("used_time", { value: span(given.seconds) }),
    ];
    return this.message("suggestion", { from_job: given.from_job, used: used.filter(Boolean).join(", ") });
  }

  private preflight(code: string, params: Params): string {
    if (code === "preparing") return this.words.findings.checking ?? code;
    return fill(this.words.findings.failed ?? "{what}", { what: this.finding({ code: params.code, params: params.params }) });
  }

  /** What is told beside the sentence: why an executor is away, which rank failed first. */
  private added(code: string, params: Params, said: string): string {
    if (code === "executor_unavailable") {
      const why = this.words.messages[`unavailable_${params.why || "not_offered"}`] ?? String(params.why);
      return `${said} (${fill(why, { at: params.at ?? "" })})`;
    }
    return code === "rank_lagged" || params.rank == null ? said : this.message("rank_first", { rank: params.rank, why: said });
  }

  private gaveUp(code: string, params: Params): string | null {
    const what = this.words.giveUps[code];
    if (what === undefined) return null;
    const told = fill(what, params);
    const why = this.words.diagnoses[String(params.category)];
    return why === undefined ? told : fill(this.words.story.gave_up_why ?? "{what}", { what: told, why });
  }

  private unknown(code: string, params: Params): string {
    const told = Object.entries(params).map(([name, value]) => `${name} ${plain(value)}`);
    return told.length ? `${code} (${told.join(", ")})` : code;
  }

  private message(key: string, params: Params = {}): string {
    return fill(this.words.messages[key] ?? key, params);
  }

  /** Parameters that are lists, times or amounts, as text. */
  private readable(code: string, params: Params): Params {
    const shown: Params = {};
    for (const [name, value] of Object.entries(params)) shown[name] = plain(value);
    for (const name of SPANS) {
      if (name in params) shown[name] = typeof params[name] === "number" ? span(params[name]) : "?";
    }
    if (params.left_s != null) shown.left = `${Math.ceil(Number(params.left_s))} s`;
    if (params.until != null) shown.until = clock(params.until, this.language);
    if ("cause" in params) shown.cause = this.cause(params.cause);
    if (code === "dependency") shown.jobs = list(params.jobs, (item) => this.dependency(item));
    if (code === "gpus_held_elsewhere") shown.gpus = list(params.gpus, (item) => this.held(item));
    if (code === "gpu_memory_held") shown.gpus = list(params.gpus, (item) => this.heldGpu(item));
    if (["not_enough", "never_fits", "gate"].includes(code)) this.amounts(code, params, shown);
    if (params.each && typeof params.each === "object") shown.each = this.each(params.each);
    if (params.values && typeof params.values === "object") {
      shown.values = Object.entries(params.values)
        .map(([name, value]) => `${name} ${plain(value)}`)
        .join(", ");
    }
    for (const name of ["processes", "holders"]) {
      if (Array.isArray(params[name])) shown[name] = list(params[name], (item) => this.process(item)) || this.message("nobody");
    }
    if (code === "preparing" || code === "pulling_image") shown.what = this.preparing(params);
    if (code === "preparation_failed") shown.what = this.preparationFailure(params);
    if (code === "service_failed") shown.what = this.serviceFailure(params);
    if (code === "retries_used_up") shown.last = this.reason(params.last) || "?";
    return shown;
  }

  private amounts(code: string, params: Params, shown: Params): void {
    const kind = String(params.resource ?? params.gate ?? "");
    shown.resource = shown.gate = this.words.nouns[kind] ?? kind;
    if (code === "gate") return;
    for (const name of ["wanted", "free", "total", "largest"]) {
      const value = params[name];
      if (typeof value === "number") shown[name] = kind === "memory" ? gigabytes(value) : number(value);
    }
  }

  /** What every node must have: 4 GPUs (H100), 8 CPU cores, 64 GB memory. */
  private each(wanted: Params): string {
    const told = ["gpu", "cpu", "memory", "port"]
      .filter((kind) => kind in wanted)
      .map((kind) => {
        const type = kind === "gpu" && wanted.gpu_type ? ` (${wanted.gpu_type})` : "";
        const amount = kind === "memory" ? gigabytes(Number(wanted[kind])) : number(Number(wanted[kind]));
        return `${amount} ${this.words.nouns[kind] ?? kind}${type}`;
      });
    return told.join(", ");
  }

  private cause(value: unknown): string {
    if (value && typeof value === "object") return this.reason(value as Coded);
    return this.words.nouns[`cause_${value}`] ?? this.words.nouns[String(value)] ?? String(value);
  }

  process(item: Params): string {
    const told: Params = {};
    for (const [name, value] of Object.entries(item)) told[name] = value || "?";
    return this.message("holder", told);
  }

  private preparing(params: Params): string {
    if (params.until != null) {
      return this.message("preparing_again", { at: clock(params.until, this.language), last: this.preparationFailure(params.last ?? {}) });
    }
    if (params.bytes_done == null) return this.message("preparing_begun");
    const done = size(Number(params.bytes_done));
    if (!params.bytes_total) return this.message("preparing_some", { done });
    const percent = `${Math.round((100 * params.bytes_done) / params.bytes_total)} %`;
    return this.message("preparing_of", { done, total: size(Number(params.bytes_total)), percent });
  }

  private preparationFailure(params: Params): string {
    const known = `fetch_${params.code}`;
    return this.message(known in this.words.messages ? known : "fetch_failed", { ...params.params, ...params });
  }

  private serviceFailure(params: Params): string {
    const shown = { ...params };
    if (typeof shown.ready_timeout_s === "number") shown.ready_timeout_s = span(shown.ready_timeout_s);
    const how = this.message(shown.signal != null ? "service_signal" : "service_exited", shown);
    const key = `service_${params.code}`;
    const what = key in this.words.messages && params.code !== "exited" ? this.message(key, { ...shown, how }) : how;
    return params.line ? this.message("service_last_line", { what, line: params.line }) : what;
  }

  private dependency(item: any): string {
    if (!item || typeof item !== "object") return String(item);
    return item.status ? `${item.job} (${this.status(item.status)})` : String(item.job);
  }

  private held(item: any): string {
    if (!item || typeof item !== "object") return String(item);
    const { holder } = item;
    const other = holder == null || holder === "server" ? this.message("another_server") : String(holder);
    return `GPU ${item.index}: ${holder && typeof holder === "object" ? who(holder) : other}`;
  }

  private heldGpu(item: any): string {
    if (!item || typeof item !== "object") return String(item);
    const holders = list(item.holders, who);
    return `GPU ${item.index}: ${item.used_mb} MB${holders ? ` (${holders})` : ""}`;
  }
}

function who(holder: Params): string {
  return `${holder.user}, pid ${holder.pid}, ${holder.name}`;
}

function list(items: unknown, one: (item: any) => string): string {
  return Array.isArray(items) ? items.map(one).join(", ") : "";
}
