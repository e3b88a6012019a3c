// Makes a PNG of a page small: 256 colours are enough for text on plain ground.
import { deflateSync, inflateSync } from "node:zlib";

const HEAD = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const MOST = 256;

/** `png`: 8 bits a channel, RGB or RGBA, not interlaced, as browsers write them. */
export function small(png) {
  const { width, height, bytes, pixels } = decode(png);
  const counted = count(pixels, bytes);
  const palette = chosen(counted);
  const near = new Map();
  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0, at = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1, at += bytes) {
      const colour = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
      let index = near.get(colour);
      if (index === undefined) near.set(colour, (index = nearest(palette, colour)));
      rows[y * (width + 1) + 1 + x] = index;
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([HEAD, chunk("IHDR", header), chunk("PLTE", colours), chunk("IDAT", deflateSync(rows, { level: 9 })), chunk("IEND", Buffer.alloc(0))]);
}

function decode(png) {
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const bytes = png[25] === 6 ? 4 : 3;
  const parts = [];
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    if (png.toString("latin1", at + 4, at + 8) === "IDAT") parts.push(png.subarray(at + 8, at + 8 + length));
    at += length + 12;
  }
  const packed = inflateSync(Buffer.concat(parts));
  const row = width * bytes;
  const pixels = Buffer.alloc(row * height);
  for (let y = 0; y < height; y += 1) {
    const filter = packed[y * (row + 1)];
    for (let x = 0; x < row; x += 1) {
      const at = y * row + x;
      const left = x >= bytes ? pixels[at - bytes] : 0;
      const up = y ? pixels[at - row] : 0;
      const corner = y && x >= bytes ? pixels[at - row - bytes] : 0;
      pixels[at] = packed[y * (row + 1) + 1 + x] + predicted(filter, left, up, corner);
    }
  }
  return { width, height, bytes, pixels };
}

function predicted(filter, left, up, corner) {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return up;
  if (filter === 3) return (left + up) >> 1;
  const guess = left + up - corner;
  const [a, b, c] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (a <= b && a <= c) return left;
  return b <= c ? up : corner;
}

function count(pixels, bytes) {
  const found = new Map();
  for (let at = 0; at < pixels.length; at += bytes) {
    const colour = (pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2];
    found.set(colour, (found.get(colour) ?? 0) + 1);
  }
  return found;
}

/** The most frequent colours, then those that lie farthest from what is there, so that no line loses its hue. */
function chosen(counted) {
  if (counted.size <= MOST) return [...counted.keys()];
  const byUse = [...counted].sort((one, other) => other[1] - one[1]);
  const palette = byUse.slice(0, MOST / 2).map(([colour]) => colour);
  const apart = new Map(byUse.slice(MOST / 2).map(([colour]) => [colour, distance(palette[nearest(palette, colour)], colour)]));
  while (palette.length < MOST && apart.size) {
    let farthest = -1;
    let score = -1;
    for (const [colour, away] of apart) {
      const weight = away * Math.sqrt(counted.get(colour));
      if (weight > score) [farthest, score] = [colour, weight];
    }
    palette.push(farthest);
    apart.delete(farthest);
    for (const [colour, away] of apart) apart.set(colour, Math.min(away, distance(farthest, colour)));
  }
  return palette;
}

function distance(one, other) {
  const [r, g, b] = [(one >> 16) - (other >> 16), ((one >> 8) & 255) - ((other >> 8) & 255), (one & 255) - (other & 255)];
  return 2 * r * r + 4 * g * g + 3 * b * b;
}

function nearest(palette, colour) {
  let best = 0;
  let least = Infinity;
  for (let index = 0; index < palette.length && least > 0; index += 1) {
    const away = distance(palette[index], colour);
    if (away < least) [best, least] = [index, away];
  }
  return best;
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum >>> 0;
});

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, "latin1"), data]);
  let sum = 0xffffffff;
  for (const byte of body) sum = (TABLE[(sum ^ byte) & 255] ^ (sum >>> 8)) >>> 0;
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE((sum ^ 0xffffffff) >>> 0, body.length + 4);
  return framed;
}
