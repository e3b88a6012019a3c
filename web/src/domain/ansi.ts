// Colours of terminals as classes; every other control sequence is left out.

export interface Piece {
  text: string;
  classes: string[];
  color?: string; // of the 256 and of the 16 million
  background?: string;
}

interface Pen {
  fore: number | string | null;
  back: number | string | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

// CSI sequences, OSC (titles, links) with either end, and the short ones.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b(?:\[([0-9;:?<=>]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])?/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

function plainPen(): Pen {
  return { fore: null, back: null, bold: false, dim: false, italic: false, underline: false, inverse: false };
}

export function withoutAnsi(line: string): string {
  return line.includes("\x1b") ? line.replace(SEQUENCE, "").replace(CONTROL, "") : line.replace(CONTROL, "");
}

/** A line in pieces of one look each. Each line begins plain. */
export function pieces(line: string): Piece[] {
  if (!line.includes("\x1b")) return [{ text: line.replace(CONTROL, ""), classes: [] }];
  const found: Piece[] = [];
  const pen = plainPen();
  let place = 0;
  const add = (text: string): void => {
    const shown = text.replace(CONTROL, "");
    if (shown) found.push(dressed(shown, pen));
  };
  for (const match of line.matchAll(SEQUENCE)) {
    add(line.slice(place, match.index));
    place = match.index + match[0].length;
    if (match[2] === "m") apply(pen, match[1] ?? "");
  }
  add(line.slice(place));
  return found.length ? found : [{ text: "", classes: [] }];
}

function dressed(text: string, pen: Pen): Piece {
  const classes: string[] = [];
  const piece: Piece = { text, classes };
  const [fore, back] = pen.inverse ? [pen.back ?? "inverse", pen.fore ?? "inverse"] : [pen.fore, pen.back];
  if (typeof fore === "number") classes.push(`ansi-${fore}`);
  else if (fore === "inverse") classes.push("ansi-on");
  else if (fore) piece.color = fore;
  if (typeof back === "number") classes.push(`ansi-back-${back}`);
  else if (back === "inverse") classes.push("ansi-back-on");
  else if (back) piece.background = back;
  for (const look of ["bold", "dim", "italic", "underline"] as const) if (pen[look]) classes.push(`ansi-${look}`);
  return piece;
}

function apply(pen: Pen, text: string): void {
  const codes = text.split(/[;:]/).map((code) => Number(code || 0));
  for (let index = 0; index < codes.length; index += 1) {
    const code = codes[index] as number;
    if (code === 38 || code === 48) {
      const [color, used] = extended(codes, index + 1);
      if (color !== null) pen[code === 38 ? "fore" : "back"] = color;
      index += used;
    } else simple(pen, code);
  }
}

function simple(pen: Pen, code: number): void {
  if (code === 0) Object.assign(pen, plainPen());
  else if (code === 1) pen.bold = true;
  else if (code === 2) pen.dim = true;
  else if (code === 3) pen.italic = true;
  else if (code === 4) pen.underline = true;
  else if (code === 7) pen.inverse = true;
  else if (code === 22) pen.bold = pen.dim = false;
  else if (code === 23) pen.italic = false;
  else if (code === 24) pen.underline = false;
  else if (code === 27) pen.inverse = false;
  else if (code >= 30 && code <= 37) pen.fore = code - 30;
  else if (code === 39) pen.fore = null;
  else if (code >= 40 && code <= 47) pen.back = code - 40;
  else if (code === 49) pen.back = null;
  else if (code >= 90 && code <= 97) pen.fore = code - 82;
  else if (code >= 100 && code <= 107) pen.back = code - 92;
}

/** 5;n of the 256, 2;r;g;b of all: the colour and how many codes it took. */
function extended(codes: number[], start: number): [number | string | null, number] {
  if (codes[start] === 5) return [indexed(codes[start + 1] ?? 0), 2];
  if (codes[start] !== 2) return [null, 0];
  const parts = codes.slice(start + 1, start + 4).map(byte);
  return [parts.length === 3 ? `rgb(${parts.join(", ")})` : null, 4];
}

function indexed(number: number): number | string {
  if (number < 16) return number;
  if (number >= 232) {
    const grey = byte(8 + (number - 232) * 10);
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const level = (value: number): number => (value ? 55 + value * 40 : 0);
  const cube = number - 16;
  return `rgb(${level(Math.floor(cube / 36))}, ${level(Math.floor(cube / 6) % 6)}, ${level(cube % 6)})`;
}

function byte(value: number): number {
  return Math.max(0, Math.min(255, value | 0));
}
