// From points to what is drawn: an axis, a smooth line, several lines over one axis, and the facts in numbers.
import type { Trouble } from "./chart";
import type { Series } from "./series";

export type Axis = "step" | "time" | "relative";
export const AXES: readonly Axis[] = ["step", "time", "relative"];

/** Of a series without steps the time is all there is. */
export function axisOf(series: readonly Series[], wanted: Axis): Axis {
  return wanted === "step" && series.some((one) => one.steps.some((step) => step === null)) ? "relative" : wanted;
}

export function positions(series: Series, axis: Axis, origin: number): number[] {
  if (axis === "step") return series.steps as number[];
  return axis === "time" ? series.times : series.times.map((at) => at - origin);
}

/** Where a moment is on the axis; null when it is after every point. */
export function placeOf(series: Series, axis: Axis, origin: number, at: number): number | null {
  if (axis !== "step") return axis === "time" ? at : at - origin;
  const index = series.times.findIndex((time) => time >= at);
  return index < 0 ? null : (series.steps[index] ?? null);
}

/**
 * From where to where a trouble is on the axis. Over steps the step it names is its beginning: when it was
 * found says nothing where a later attempt did these steps again.
 */
export function bandOf(
  series: Series,
  axis: Axis,
  origin: number,
  trouble: Pick<Trouble, "from" | "to" | "step">,
): [number, number] | null {
  const named = axis === "step" ? trouble.step : null;
  const from = named ?? placeOf(series, axis, origin, trouble.from);
  if (from === null) return null;
  const end = positions(series, axis, origin).at(-1) ?? from;
  const to = placeOf(series, axis, origin, trouble.to) ?? end;
  return [from, Math.max(from, Math.min(to, end))];
}

/** The time at a place on the axis, to ask the server for that part. */
export function timeAt(series: Series, axis: Axis, origin: number, place: number): number {
  if (axis !== "step") return axis === "time" ? place : place + origin;
  const index = series.steps.findIndex((step) => (step ?? 0) >= place);
  return (index < 0 ? series.times.at(-1) : series.times[index]) ?? 0;
}

const DRAWN = 250; // points for which a weight is meant as it is

/**
 * Exponential mean without the pull of its beginning; what is no number leaves a gap and pulls nothing.
 * Of many points each pulls less, so that a line is as smooth with 5,000 points as it was with 500.
 */
export function smooth(values: readonly (number | null | undefined)[], asked: number): (number | null)[] {
  const weight = asked ** Math.min(1, DRAWN / Math.max(1, values.length));
  let last = 0;
  let pull = 1;
  return values.map((value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return null;
    last = last * weight + (1 - weight) * value;
    pull *= weight;
    return last / (1 - pull);
  });
}

/** Null where there is no number to draw. */
export function drawable(values: readonly number[], logarithmic: boolean): (number | null)[] {
  return values.map((value) => (Number.isFinite(value) && (!logarithmic || value > 0) ? value : null));
}

/** With a gap at each of these places: between two attempts nothing was measured. */
export function broken(
  x: readonly number[],
  y: readonly (number | null)[],
  places: readonly number[],
): { x: number[]; y: (number | null)[] } {
  const found = { x: [] as number[], y: [] as (number | null)[] };
  const left = [...places].sort((one, other) => one - other);
  x.forEach((place, index) => {
    while (left.length && (left[0] as number) <= place) {
      const gap = left.shift() as number;
      if (gap < place && index > 0) {
        found.x.push(gap);
        found.y.push(null);
      }
    }
    found.x.push(place);
    found.y.push(y[index] ?? null);
  });
  return found;
}

/** Several lines over the places of all; undefined where a line has no point of its own. */
export function joined(
  lines: readonly { x: readonly number[]; y: readonly (number | null)[] }[],
): [number[], ...(number | null | undefined)[][]] {
  const only = lines[0];
  if (lines.length === 1 && only) return [only.x as number[], only.y as (number | null)[]];
  const x = [...new Set(lines.flatMap((line) => line.x))].sort((one, other) => one - other);
  const at = new Map(x.map((place, index) => [place, index]));
  const columns = lines.map((line) => {
    const column = new Array<number | null | undefined>(x.length).fill(undefined);
    line.x.forEach((place, index) => (column[at.get(place) as number] = line.y[index]));
    return column;
  });
  return [x, ...columns];
}

export type Direction = "low" | "high" | null;
const LOW = /(^|[^a-z])(loss|error|err|perplexity|ppl|wer|cer|mae|mse|rmse|fid|nll|bpb|regret)/i;
const HIGH = /(^|[^a-z])(acc|accuracy|f1|auc|bleu|rouge|score|reward|map|iou|miou|precision|recall|dice|psnr|ssim|r2|pass)/i;

export function directionOf(name: string): Direction {
  if (LOW.test(name)) return "low";
  return HIGH.test(name) ? "high" : null;
}

export interface Facts {
  count: number;
  last: number | null;
  low: number | null;
  high: number | null;
  best: number | null;
  bestAt: number | null; // place in the series
  notFinite: number;
  firstNotFinite: number | null; // place in the series
}

export function factsOf(name: string, series: Series): Facts {
  const direction = directionOf(name);
  const facts: Facts = {
    count: series.values.length,
    last: series.values.at(-1) ?? null,
    low: null,
    high: null,
    best: null,
    bestAt: null,
    notFinite: 0,
    firstNotFinite: null,
  };
  let lowAt = -1;
  let highAt = -1;
  series.values.forEach((value, index) => {
    if (!Number.isFinite(value)) {
      facts.notFinite += 1;
      facts.firstNotFinite ??= index;
    } else {
      if (lowAt < 0 || value < (series.values[lowAt] as number)) lowAt = index;
      if (highAt < 0 || value > (series.values[highAt] as number)) highAt = index;
    }
  });
  facts.low = lowAt < 0 ? null : (series.values[lowAt] as number);
  facts.high = highAt < 0 ? null : (series.values[highAt] as number);
  const best = direction === "low" ? lowAt : direction === "high" ? highAt : -1;
  if (best >= 0) [facts.best, facts.bestAt] = [series.values[best] as number, best];
  return facts;
}

/** What rank 1 and up report has its own name beside that of rank 0: `loss.rank3`. */
export function rankOf(name: string): { base: string; rank: number } | null {
  const found = /^(.+)\.rank(\d+)$/.exec(name);
  return found ? { base: found[1] as string, rank: Number(found[2]) } : null;
}

/** The names of the other ranks by the name of the first, in order. */
export function byRank(names: readonly string[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const name of names) {
    const of = rankOf(name);
    if (of && names.includes(of.base)) found.set(of.base, [...(found.get(of.base) ?? []), name]);
  }
  for (const all of found.values()) all.sort((one, other) => (rankOf(one)?.rank ?? 0) - (rankOf(other)?.rank ?? 0));
  return found;
}

export function isOfSystem(name: string): boolean {
  return name.startsWith("system.") || name.startsWith("gpu.");
}

const MAIN = ["loss", "val_loss", "accuracy", "val_accuracy", "reward", "perplexity"];
const NEVER_MAIN = new Set(["learning_rate", "lr", "epoch", "step", "grad_norm", "total_steps", "total_epochs"]);

/** The one that says most, as the server chooses it for lists. */
export function mainOf(names: readonly string[]): string | null {
  const known = MAIN.find((name) => names.includes(name));
  if (known) return known;
  const own = names.filter((name) => !NEVER_MAIN.has(name) && !isOfSystem(name) && !rankOf(name)).sort();
  return own.find((name) => /loss/i.test(name)) ?? own[0] ?? null;
}

/** Losses first, then by name with numbers as numbers. */
export function byName(one: string, other: string): number {
  const rank = (name: string): number => (/^loss$/i.test(name) ? 0 : /loss/i.test(name) ? 1 : 2);
  return rank(one) - rank(other) || one.localeCompare(other, "en", { numeric: true });
}

export function csvOf(lines: readonly { name: string; series: Series }[]): string {
  const rows = ["metric,step,time,value"];
  for (const { name, series } of lines) {
    const quoted = /[",\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
    series.times.forEach((at, index) => rows.push(`${quoted},${series.steps[index] ?? ""},${at},${series.values[index]}`));
  }
  return `${rows.join("\n")}\n`;
}
