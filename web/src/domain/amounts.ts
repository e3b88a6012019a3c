// Numbers with their units.

/** 8, 0.5, 1.25: no zeros that say nothing; what is small is not told as none. */
export function number(value: number): string {
  if (value !== 0 && Math.abs(value) < 0.001) return String(Number(value.toPrecision(3)));
  return String(Number(value.toFixed(3)));
}

export function gigabytes(value: number): string {
  return value > 0 && value < 1 ? `${Math.round(value * 1024)}MB` : `${number(Math.round(value * 10) / 10)}GB`;
}

/** Any value of a field as text; a dash where there is none. */
export function valueText(value: unknown): string {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export function size(bytes: number): string {
  let left = bytes;
  let unit = 0;
  while (left >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? left : left.toFixed(1)} ${UNITS[unit]}`;
}

/** A metric's value: four digits that matter; NaN and infinities come as words. */
export function metric(value: number | string | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

interface Wanted {
  cpu_cores?: number | null;
  memory_gb?: number | null;
  gpu_count?: number | null;
  gpu_type?: string | null;
}

/** 8C / 32GB / 2GPU, the GPU left out when there is none. */
export function resources(job: Wanted): string {
  const parts: string[] = [];
  if (job.cpu_cores != null) parts.push(`${number(job.cpu_cores)}C`);
  if (job.memory_gb != null) parts.push(gigabytes(job.memory_gb));
  if (job.gpu_count) parts.push(`${number(job.gpu_count)}GPU${job.gpu_type ? ` ${job.gpu_type}` : ""}`);
  return parts.join(" / ") || "–";
}
