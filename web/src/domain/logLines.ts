// The lines of a log that are in memory: by number, never more than so many, the newest one perhaps unfinished.
import { restOf, RowMap, type Dropped } from "./logRows";

export interface Outline {
  total: number;
  unfinished: boolean;
  resume: number;
  dropped: Dropped[];
}

export interface LogPage {
  logs: string[];
  from: number | null;
  size: number;
  gaps: { at: number; from_byte: number }[];
  outline?: Outline | null;
}

export const MOST_LINES = 20_000;
const LONGEST_LINE = 16 * 1024; // as the server cuts them

/** What a terminal shows in the end: text after the last carriage return replaces the line. A trailing one keeps it until more comes. */
export function folded(raw: string): string {
  let end = raw.length;
  while (end > 0 && raw[end - 1] === "\r") end -= 1;
  return raw.slice(raw.lastIndexOf("\r", end - 1) + 1, end);
}

export class LogLines {
  rows = new RowMap(0);
  private lines = new Map<number, string>();
  private dropped: readonly Dropped[] = [];
  private total = 0;
  private open: string | null = null; // raw text of the unfinished last line; null when it is whole

  get size(): number {
    return this.lines.size;
  }

  get newest(): number {
    return this.total - 1;
  }

  text(key: number): string | undefined {
    return this.lines.get(key);
  }

  /** The end of the log, as it was loaded with its outline: forgets what was there before. */
  begin(page: LogPage): void {
    const outline = page.outline as Outline;
    this.lines.clear();
    this.shape(outline);
    // Only behind the last gap is it certain which numbers these lines have.
    const behind = page.gaps.length ? (page.gaps.at(-1) as { at: number }).at + 1 : 0;
    const shown = page.logs.slice(behind);
    const first = outline.total - shown.length;
    shown.forEach((line, index) => this.lines.set(first + index, line));
    const told = outline.resume < page.size; // what the last line shows comes once more
    this.open = outline.unfinished ? (told ? "" : (shown.at(-1) ?? "")) : null;
  }

  /** Lines from the middle, by number. */
  put(page: LogPage): void {
    // How many there are, the live text alone says: it would count again what an answer was ahead of it.
    if (page.outline) this.shape({ ...page.outline, total: this.total });
    const gaps = new Map(page.gaps.map((gap) => [gap.at, gap.from_byte]));
    let number = page.from ?? 0;
    let cut = false; // the next one is the rest of a line whose beginning stands before the gap
    page.logs.forEach((line, index) => {
      if (gaps.has(index)) {
        const found = this.dropped.find((part) => part.from_byte === gaps.get(index));
        cut = found !== undefined && found.after === found.before;
        number = found?.after ?? number;
        return;
      }
      this.keep(cut ? restOf(number) : number, line);
      cut = false;
      number += 1;
    });
  }

  /** Text as it is written. The numbers of the lines that became whole: from, to before. */
  append(text: string): [number, number] {
    const first = this.open === null ? this.total : this.total - 1;
    const parts = text.split("\n");
    parts.forEach((part, index) => {
      const ended = index < parts.length - 1;
      if (part || ended) this.grow(part, ended);
    });
    this.rows = new RowMap(this.total, this.dropped);
    return [first, this.open === null ? this.total : this.total - 1];
  }

  /** Keeps what is near `row`, forgets the rest. */
  trim(row: number, most = MOST_LINES): void {
    if (this.lines.size <= most * 1.1) return;
    const near = this.rows.at(Math.max(0, Math.min(row, this.rows.count - 1)));
    const centre = near.kind === "line" ? near.number : this.newest;
    const byDistance = [...this.lines.keys()].sort((one, other) => Math.abs(one - centre) - Math.abs(other - centre));
    for (const key of byDistance.slice(most)) if (key !== this.newest) this.lines.delete(key);
  }

  private shape(outline: Outline): void {
    this.total = outline.total;
    this.dropped = outline.dropped;
    this.rows = new RowMap(this.total, this.dropped);
  }

  private keep(number: number, line: string): void {
    if (number < this.total && !(number === this.newest && this.open !== null)) this.lines.set(number, line);
  }

  private grow(part: string, ended: boolean): void {
    if (this.open === null) {
      this.total += 1;
      this.open = "";
    }
    const raw = this.open + part;
    const shown = folded(raw);
    const line = shown.length > LONGEST_LINE ? `${shown.slice(0, LONGEST_LINE)} …` : shown;
    this.lines.set(this.newest, line);
    const pending = raw.endsWith("\r") ? "\r" : "";
    this.open = ended ? null : shown.slice(0, LONGEST_LINE) + pending;
  }
}
