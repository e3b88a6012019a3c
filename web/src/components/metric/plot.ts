// One uPlot: lines in the page's colours, what is no number as crosses, attempts and alerts as marks.
import uPlot from "uplot";
import type { Axis } from "@/domain/curve";
import { metric } from "@/domain/amounts";
import { span } from "@/domain/duration";

export interface Mark {
  at: number; // place on the axis
  label: string;
}
export interface Band {
  from: number;
  to: number;
  bad: boolean;
}
export interface Cross {
  at: number;
  up: boolean; // +Infinity leaves by the top, NaN and -Infinity lie on the ground
}

export interface Drawing {
  axis: Axis;
  logarithmic: boolean;
  smoothed: boolean;
  lines: number;
  ghosts: readonly number[]; // of each faint line, the line it is an earlier attempt of; their columns come first
  limit: number | null;
  zoom: () => [number, number] | null;
  marks: () => readonly Mark[];
  bands: () => readonly Band[];
  crosses: () => readonly Cross[];
  hovered: (index: number | null) => void;
  chosen: (range: [number, number] | null) => void;
  drawn: () => void;
  sync: string;
}

export function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    text: of("--ry-soft"),
    line: of("--ry-line"),
    bad: of("--ry-bad"),
    warn: of("--ry-warn"),
    good: of("--ry-good"),
    series: Array.from({ length: 6 }, (_, index) => of(`--ry-series-${index + 1}`)),
  };
}

const FONT = "11px system-ui, sans-serif";

function short(value: number): string {
  if (Math.abs(value) >= 1e6) return `${Number((value / 1e6).toFixed(2))}M`;
  return Math.abs(value) >= 1e4 ? `${Number((value / 1e3).toFixed(1))}k` : String(Number(value.toPrecision(6)));
}

function faint(colour: string, part: number): string {
  const found = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(colour);
  return found
    ? `rgb(${found
        .slice(1)
        .map((byte) => parseInt(byte, 16))
        .join(" ")} / ${part}%)`
    : colour;
}

/** With the day where the axis spans more than one, with seconds where minutes say too little. */
function moments(splits: number[]): string[] {
  const apart = (splits[1] ?? 0) - (splits[0] ?? 0);
  const time: Intl.DateTimeFormatOptions = {
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
    ...(apart < 60 ? { second: "2-digit" } : {}),
  };
  const many = (splits.at(-1) ?? 0) - (splits[0] ?? 0) > 86_400;
  const format = new Intl.DateTimeFormat(document.documentElement.lang, many ? { month: "2-digit", day: "2-digit", ...time } : time);
  return splits.map((at) => format.format(at * 1000));
}

/** Two columns a line when it is smoothed (as it was, smooth), else one. */
export function seriesOptions(drawing: Pick<Drawing, "lines" | "ghosts" | "smoothed">, palette: string[]): uPlot.Series[] {
  const found: uPlot.Series[] = [{}];
  for (const line of drawing.ghosts) {
    const stroke = faint(palette[line % palette.length] as string, 40);
    found.push({ stroke, width: 1, dash: [3, 3], points: { show: false } });
  }
  for (let index = 0; index < drawing.lines; index += 1) {
    const stroke = palette[index % palette.length] as string;
    const dash = index >= palette.length ? [6, 3] : undefined;
    const points = { show: (plot: uPlot) => (plot.data[0]?.length ?? 0) < 3, size: 5, fill: stroke };
    if (drawing.smoothed) found.push({ stroke: faint(stroke, 30), width: 1, points: { show: false } });
    found.push({ stroke, width: 1.6, dash, points });
  }
  return found;
}

function axes(drawing: Drawing, colour: ReturnType<typeof colours>): uPlot.Axis[] {
  const base = {
    stroke: colour.text,
    font: FONT,
    grid: { stroke: colour.line, width: 1 },
    ticks: { stroke: colour.line, width: 1, size: 4 },
  };
  const across: uPlot.Axis = { ...base, size: 26, space: drawing.axis === "time" ? 84 : 64 };
  if (drawing.axis === "time") across.values = (_, splits) => moments(splits);
  else across.values = (_, splits) => splits.map((value) => (drawing.axis === "step" ? short(value) : span(value)));
  return [across, { ...base, size: 52, values: (_, splits) => splits.map((value) => (value === null ? "" : metric(value))) }];
}

function under(plot: uPlot, drawing: Drawing): void {
  const { ctx, bbox } = plot;
  const colour = colours();
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const band of drawing.bands()) {
    const from = plot.valToPos(band.from, "x", true);
    ctx.fillStyle = faint(band.bad ? colour.bad : colour.warn, 14);
    ctx.fillRect(from, bbox.top, Math.max(3, plot.valToPos(band.to, "x", true) - from), bbox.height);
  }
  ctx.restore();
}

function over(plot: uPlot, drawing: Drawing): void {
  const { ctx, bbox } = plot;
  const colour = colours();
  const pixel = devicePixelRatio || 1;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = pixel;
  ctx.font = `${10 * pixel}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "alphabetic";
  ctx.setLineDash([4 * pixel, 3 * pixel]);
  for (const mark of drawing.marks()) {
    const x = Math.round(plot.valToPos(mark.at, "x", true));
    ctx.strokeStyle = ctx.fillStyle = colour.text;
    line(ctx, x, bbox.top, x, bbox.top + bbox.height);
    ctx.fillText(mark.label, x + 4 * pixel, bbox.top + 11 * pixel);
  }
  if (drawing.limit !== null) {
    const y = plot.valToPos(drawing.limit, "y", true);
    ctx.strokeStyle = colour.warn;
    line(ctx, bbox.left, y, bbox.left + bbox.width, y);
  }
  ctx.setLineDash([]);
  ctx.strokeStyle = colour.bad;
  ctx.lineWidth = 1.5 * pixel;
  const arm = 3.5 * pixel;
  for (const cross of drawing.crosses()) {
    const x = plot.valToPos(cross.at, "x", true);
    const y = cross.up ? bbox.top + 7 * pixel : bbox.top + bbox.height - 7 * pixel;
    line(ctx, x - arm, y - arm, x + arm, y + arm);
    line(ctx, x - arm, y + arm, x + arm, y - arm);
  }
  ctx.restore();
  drawing.drawn();
}

function line(ctx: CanvasRenderingContext2D, x: number, y: number, toX: number, toY: number): void {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(toX, toY);
  ctx.stroke();
}

function heightRange(drawing: Drawing): uPlot.Scale.Range {
  return (_, low, high) => {
    if (low === null || high === null || !Number.isFinite(low)) return drawing.logarithmic ? [1, 10] : [0, 1];
    if (drawing.logarithmic) return uPlot.rangeLog(low, high, 10, false);
    const top = drawing.limit === null ? high : Math.max(high, drawing.limit * 1.05);
    const bottom = drawing.limit === null ? low : Math.min(0, low);
    return uPlot.rangeNum(bottom, top === bottom ? bottom + (Math.abs(bottom) || 1) * 0.1 : top, 0.08, true);
  };
}

export function makePlot(element: HTMLElement, width: number, height: number, drawing: Drawing, data: uPlot.AlignedData): uPlot {
  const colour = colours();
  const acrossRange: uPlot.Scale.Range = (_, low, high) => drawing.zoom() ?? (low === high ? [low - 1, high + 1] : [low, high]);
  return new uPlot(
    {
      width,
      height,
      padding: [8, 8, 0, 0],
      legend: { show: false },
      scales: {
        x: { time: drawing.axis === "time", range: acrossRange },
        y: { distr: drawing.logarithmic ? 3 : 1, range: heightRange(drawing) },
      },
      series: seriesOptions(drawing, colour.series),
      axes: axes(drawing, colour),
      cursor: {
        sync: { key: drawing.sync, setSeries: false, scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        y: false,
        points: { size: 6 },
        bind: { dblclick: () => () => (drawing.chosen(null), null) },
      },
      hooks: {
        drawClear: [(plot) => under(plot, drawing)],
        draw: [(plot) => over(plot, drawing)],
        setCursor: [(plot) => drawing.hovered(plot.cursor.idx ?? null)],
        setSelect: [
          (plot) => {
            const { left, width: wide } = plot.select;
            if (wide < 4) return;
            drawing.chosen([plot.posToVal(left, "x"), plot.posToVal(left + wide, "x")]);
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    },
    data,
    element,
  );
}
