// Rows on screen and numbers of lines: the same, until lines were dropped from the middle of a log.
// All dropped lines together are one row; a line that was cut by them has a row on each side.

export interface Dropped {
  before: number; // the last line before; -1 when there is none
  after: number; // the line that goes on behind
  bytes: number;
  from_byte: number;
}

export type Row = { kind: "line"; number: number; key: number } | { kind: "gap"; bytes: number; lines: number; key: string };

interface Stretch {
  row: number;
  number: number;
  cut: boolean; // its first line is the rest of one that has a row before the gap
}

/** The rest of a cut line is kept beside its beginning. */
export function restOf(number: number): number {
  return number + 0.5;
}

export class RowMap {
  readonly count: number;
  private readonly stretches: Stretch[] = [{ row: 0, number: 0, cut: false }];

  constructor(
    readonly total: number,
    private readonly dropped: readonly Dropped[] = [],
  ) {
    for (const gap of dropped) {
      const last = this.stretches.at(-1) as Stretch;
      const gapRow = last.row + Math.max(0, gap.before - last.number + 1);
      this.stretches.push({ row: gapRow + 1, number: gap.after, cut: gap.after === gap.before });
    }
    const last = this.stretches.at(-1) as Stretch;
    this.count = last.row + Math.max(0, total - last.number);
  }

  at(row: number): Row {
    const index = this.stretchOf((stretch) => stretch.row <= row);
    const stretch = this.stretches[index] as Stretch;
    const next = this.stretches[index + 1];
    if (next && row === next.row - 1) {
      const gap = this.dropped[index] as Dropped;
      return { kind: "gap", bytes: gap.bytes, lines: Math.max(0, gap.after - gap.before - 1), key: `gap ${index}` };
    }
    const number = stretch.number + row - stretch.row;
    return { kind: "line", number, key: stretch.cut && row === stretch.row ? restOf(number) : number };
  }

  /** Of a line that was dropped: the row that says so. */
  rowOf(number: number): number {
    const index = this.stretchOf((stretch) => stretch.number < number || (stretch.number === number && !stretch.cut));
    const stretch = this.stretches[Math.max(0, index)] as Stretch;
    const next = this.stretches[index + 1];
    const row = stretch.row + Math.max(0, number - stretch.number);
    return Math.min(row, next ? next.row - 1 : Math.max(0, this.count - 1));
  }

  private stretchOf(holds: (stretch: Stretch) => boolean): number {
    for (let index = this.stretches.length - 1; index > 0; index -= 1) if (holds(this.stretches[index] as Stretch)) return index;
    return 0;
  }
}
