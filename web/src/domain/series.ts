// The points of one metric: kept in order, bounded, extremes never lost. NaN and infinities are points too.

export interface Points {
  steps: readonly (number | null)[];
  times: readonly number[];
  values: readonly (number | string)[];
}

export interface Series {
  steps: (number | null)[];
  times: number[];
  values: number[];
  sampled: boolean; // there are more points than these
  whole: [number, number] | null; // between these times every point is here, though it is sampled
  attempt: number; // of the newest points, as far as is known
}

export const MOST_POINTS = 20_000;

/** JSON has no NaN: it travels as a word. */
export function numberOf(value: number | string): number {
  return typeof value === "number" ? value : Number(value);
}

export function seriesOf(points: Points & { sampled?: boolean }, attempt = 0): Series {
  return {
    steps: [...points.steps],
    times: [...points.times],
    values: points.values.map(numberOf),
    sampled: points.sampled ?? false,
    whole: null,
    attempt,
  };
}

/** New points of an attempt. Steps that a later attempt does again are its own: the older ones go. */
export function add(series: Series, points: Points, attempt: number): void {
  const first = points.steps.find((step) => step !== null);
  if (attempt > series.attempt && series.attempt > 0 && first != null) {
    cut(series, (index) => (series.steps[index] ?? -1) < first);
  }
  series.attempt = Math.max(series.attempt, attempt);
  const known = new Set<string>();
  const oldest = points.times.reduce((least, at) => Math.min(least, at), Infinity);
  for (let index = series.times.length - 1; index >= 0 && (series.times[index] as number) >= oldest; index -= 1)
    known.add(keyOf(series, index));
  let ordered = true;
  points.times.forEach((at, index) => {
    const step = points.steps[index] ?? null;
    if (known.has(`${step} ${at}`)) return;
    const before = series.steps.at(-1) ?? null;
    if (step !== null && before !== null ? step < before : at < (series.times.at(-1) ?? -Infinity)) ordered = false;
    series.steps.push(step);
    series.times.push(at);
    series.values.push(numberOf(points.values[index] as number | string));
  });
  if (!ordered) sort(series);
  if (series.times.length > MOST_POINTS) thin(series, MOST_POINTS / 2);
}

/** Every point between two times, in place of the few that stood there. */
export function refine(series: Series, detail: Series, since: number, until: number): void {
  cut(series, (index) => (series.times[index] as number) < since || (series.times[index] as number) > until);
  series.steps.push(...detail.steps);
  series.times.push(...detail.times);
  series.values.push(...detail.values);
  sort(series);
  series.whole = detail.sampled ? null : [since, until];
}

/** Of every stretch the lowest, the highest and all that is no number stay: never an average. */
export function thin(series: Series, most: number): void {
  const { length } = series.times;
  if (length <= most) return;
  const keep = new Uint8Array(length);
  const stretch = Math.max(1, Math.ceil(length / Math.max(1, Math.floor(most / 2))));
  for (let start = 0; start < length; start += stretch) {
    let low = -1;
    let high = -1;
    for (let index = start; index < Math.min(length, start + stretch); index += 1) {
      const value = series.values[index] as number;
      if (!Number.isFinite(value)) keep[index] = 1;
      else {
        if (low < 0 || value < (series.values[low] as number)) low = index;
        if (high < 0 || value >= (series.values[high] as number)) high = index;
      }
    }
    if (low >= 0) keep[low] = keep[high] = 1;
  }
  keep[0] = keep[length - 1] = 1;
  cut(series, (index) => keep[index] === 1);
  series.sampled = true;
  series.whole = null;
}

function keyOf(series: Series, index: number): string {
  return `${series.steps[index]} ${series.times[index]}`;
}

function cut(series: Series, stays: (index: number) => boolean): void {
  let kept = 0;
  for (let index = 0; index < series.times.length; index += 1) {
    if (!stays(index)) continue;
    series.steps[kept] = series.steps[index] as number | null;
    series.times[kept] = series.times[index] as number;
    series.values[kept] = series.values[index] as number;
    kept += 1;
  }
  series.steps.length = series.times.length = series.values.length = kept;
}

function sort(series: Series): void {
  const order = series.times.map((_, index) => index);
  order.sort((one, other) => {
    const [a, b] = [series.steps[one] ?? null, series.steps[other] ?? null];
    const bySteps = a !== null && b !== null ? a - b : 0;
    return bySteps || (series.times[one] as number) - (series.times[other] as number);
  });
  series.steps = order.map((index) => series.steps[index] as number | null);
  series.times = order.map((index) => series.times[index] as number);
  series.values = order.map((index) => series.values[index] as number);
}
