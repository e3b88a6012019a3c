// A job as it is being written: one object behind the form and the YAML, without what was left empty.

export type Draft = Record<string, unknown>;

/** What a clone takes over from a job's answer; the rest are results, not wishes. */
const WISHES = [
  ...["name", "description", "job_type", "command", "working_dir", "env_vars", "image", "executor", "cpu_cores", "memory_gb", "gpu_count", "gpu_type"],
  ...["ports", "priority", "max_retries", "retry_delays", "labels", "dataset_ids", "prefetch", "output_path", "params", "checkpoint", "timeout_s"],
  ...["grace_s", "services", "notify", "recovery", "distributed", "tty", "isolation", "lease_s", "on_lease_lost", "depends_on"],
];
const MASK = "***"; // as the server writes it, alone or inside an address
const MASKED = ["env_vars", "services", "notify", "prefetch"]; // elsewhere three stars are three stars
const UNSAID: Record<string, unknown> = { job_type: "single", executor: "auto", ports: 0, isolation: "none", tty: false, grace_s: 40 };

function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === "") return true;
  if (Array.isArray(value)) return value.length === 0;
  return typeof value === "object" && Object.keys(value).length === 0;
}

export interface Clone {
  draft: Draft;
  again: string[]; // what the server hides and must be given once more, such as env_vars.TOKEN
}

/** Of an existing job. What is masked is left out: sent as it is shown, it would be wrong and look right. */
export function cloneOf(job: Record<string, unknown>): Clone {
  const draft: Draft = {};
  const again: string[] = [];
  for (const name of WISHES) {
    const value = MASKED.includes(name) ? unmasked(job[name], name, again) : job[name];
    if (!isEmpty(value) && value !== UNSAID[name]) draft[name] = value;
  }
  return { draft, again };
}

function unmasked(value: unknown, path: string, again: string[]): unknown {
  if (typeof value === "string" && value.includes(MASK)) {
    again.push(path);
    return undefined;
  }
  if (Array.isArray(value)) return value.map((item, place) => unmasked(item, `${path}[${place}]`, again)).filter((item) => item !== undefined);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).map(([name, item]) => [name, name === "command" ? item : unmasked(item, `${path}.${name}`, again)] as const);
  return Object.fromEntries(kept.filter(([, item]) => item !== undefined));
}

/** With one field changed; an empty one is left out. */
export function withField(draft: Draft, name: string, value: unknown): Draft {
  const next = { ...draft };
  if (isEmpty(value)) delete next[name];
  else next[name] = value;
  return next;
}

/** NAME=value lines to a table and back. */
export function readPairs(text: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const at = line.indexOf("=");
    if (at > 0) found[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return found;
}

export function writePairs(pairs: unknown): string {
  return Object.entries((pairs ?? {}) as Record<string, unknown>)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");
}

/** A list is executed as it is, and shown with quotes where it needs them. */
export function commandText(command: unknown): string {
  if (!Array.isArray(command)) return String(command ?? "");
  return command.map((word) => (/^[\w@%+=:,./-]+$/.test(String(word)) ? String(word) : `'${String(word).replaceAll("'", "'\\''")}'`)).join(" ");
}
