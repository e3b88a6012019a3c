// A line as it is drawn: its colours, its time apart, and what is searched for marked.
import { pieces, type Piece } from "./ansi";
import { levelOf, timeLength, type LogLevel } from "./logLevel";

export interface Drawn extends Piece {
  found: boolean;
  time: boolean;
}

export interface Look {
  level: LogLevel;
  parts: Drawn[];
}

export function lookOf(line: string, pattern: RegExp | null, withTime: boolean): Look {
  const found = pieces(line);
  const plain = found.map((piece) => piece.text).join("");
  const time = timeLength(plain);
  const skip = time && !withTime ? time + (plain[time] === " " ? 1 : 0) : 0;
  const cuts = new Set([0, time, skip, ...places(plain, pattern).flat()]);
  const hits = places(plain, pattern);
  const parts: Drawn[] = [];
  let place = 0;
  for (const piece of found) {
    const end = place + piece.text.length;
    const inside = [...cuts].filter((cut) => cut > place && cut < end).sort((one, other) => one - other);
    for (const [from, to] of stretches([place, ...inside, end])) {
      if (from < skip) continue;
      const hit = hits.some(([first, last]) => from >= first && to <= last);
      parts.push({ ...piece, text: plain.slice(from, to), found: hit, time: to <= time });
    }
    place = end;
  }
  return { level: levelOf(plain), parts };
}

function stretches(cuts: number[]): [number, number][] {
  const found: [number, number][] = [];
  for (let index = 1; index < cuts.length; index += 1) {
    const [from, to] = [cuts[index - 1] as number, cuts[index] as number];
    if (to > from) found.push([from, to]);
  }
  return found;
}

function places(text: string, pattern: RegExp | null): [number, number][] {
  if (!pattern) return [];
  const found: [number, number][] = [];
  for (const match of text.matchAll(pattern)) {
    if (match[0]) found.push([match.index, match.index + match[0].length]);
    if (found.length >= 200) break;
  }
  return found;
}
