// Durations and moments as people say them.

/** 4 s, 12 m, 3 h 20 m, 5 d 2 h. */
export function span(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 600) return `${Math.floor(whole / 60)} m ${whole % 60} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} m`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} m`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
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

/** In the viewer's zone; with the date when it is not today. */
export function clock(value: string | number | null | undefined, language = "en"): string {
  const then = moment(value);
  if (then === null) return "–";
  const date = new Date(then);
  const sameDay = date.toDateString() === new Date().toDateString();
  const time: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  const day: Intl.DateTimeFormatOptions = { year: "numeric", month: "2-digit", day: "2-digit" };
  return new Intl.DateTimeFormat(language, sameDay ? time : { ...day, ...time }).format(date);
}
