// Durations and moments as people say them.

const UNITS = { en: ["d", "h", "m", "s"], zh: ["天", "小时", "分", "秒"] } as const;
let units: readonly string[] = UNITS.en;

/** Set once with the language of the page: spans are everywhere. */
export function speakSpans(language: keyof typeof UNITS): void {
  units = UNITS[language];
}

/** 4 s, 12 m, 3 h 20 m, 5 d 2 h. */
export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.floor(seconds));
  const [days, hours, minutes, left] = units;
  if (whole < 60) return `${whole} ${left}`;
  if (whole < 600) return `${Math.floor(whole / 60)} ${minutes} ${whole % 60} ${left}`;
  if (whole < 3600) return `${Math.floor(whole / 60)} ${minutes}`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} ${hours} ${Math.floor((whole % 3600) / 60)} ${minutes}`;
  return `${Math.floor(whole / 86400)} ${days} ${Math.floor((whole % 86400) / 3600)} ${hours}`;
}

/** Milliseconds since the epoch of what the API gives: an ISO time or seconds. */
export function moment(value: string | number | null | undefined): number | null {
  if (value === null || value === undefined || value === "") return null;
  const found = typeof value === "number" ? value * 1000 : Date.parse(value);
  return Number.isNaN(found) ? null : found;
}

/** Seconds from then until now. */
export function since(value: string | number | null | undefined, now: number): number | null {
  const then = moment(value);
  return then === null ? null : (now - then) / 1000;
}

/** How long until then; a moment that has passed is now. */
export function spanUntil(value: string | number | null | undefined, now: number): string {
  const seconds = since(value, now);
  return seconds === null ? "?" : span(Math.max(0, -seconds));
}

/** As clock, without seconds: nobody knows the second in which a training will end. */
export function about(value: string | number | null | undefined, language = "en"): string {
  return clock(value, language, {});
}

const WITH_SECONDS: Intl.DateTimeFormatOptions = { second: "2-digit" };

/** In the viewer's zone; with the date when it is not today. */
export function clock(value: string | number | null | undefined, language = "en", seconds = WITH_SECONDS): string {
  const then = moment(value);
  if (then === null) return "–";
  const date = new Date(then);
  const sameDay = date.toDateString() === new Date().toDateString();
  const time: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", ...seconds, hour12: false };
  const day: Intl.DateTimeFormatOptions = { year: "numeric", month: "2-digit", day: "2-digit" };
  return new Intl.DateTimeFormat(language, sameDay ? time : { ...day, ...time }).format(date);
}
