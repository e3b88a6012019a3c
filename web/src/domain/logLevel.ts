// How serious a line is, and the moment it begins with, as most programs write them.

export type LogLevel = "error" | "warning" | "debug" | "";

const ERROR = either(
  /(?:^|[\s[(|:])(?:ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE|PANIC)(?=$|[\s\]):|,])/,
  /^\s*(?:Traceback \(most recent call last\)|[\w.]*(?:Error|Exception)\b.*:|E\d{4} )/,
);
const WARNING = /(?:^|[\s[(|:])(?:WARNING|WARN)(?=$|[\s\]):|,])|\b\w*Warning:|^W\d{4} /;
const DEBUG = /(?:^|[\s[(|:])(?:DEBUG|TRACE)(?=$|[\s\]):|,])/;
const TIME = either(
  /^[[(]?\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?[\])]?(?=[\s,|:-]|$)/,
  /^[[(]?\d{2}:\d{2}:\d{2}(?:[.,]\d{1,9})?[\])]?(?=[\s,|:-]|$)/,
);
const LOOKED_AT = 400;

export function levelOf(line: string): LogLevel {
  const head = line.slice(0, LOOKED_AT);
  if (ERROR.test(head)) return "error";
  if (WARNING.test(head)) return "warning";
  return DEBUG.test(head) ? "debug" : "";
}

/** How many characters at the beginning are the time of writing. */
export function timeLength(line: string): number {
  const found = TIME.exec(line);
  return found ? found[0].length : 0;
}

function either(...patterns: RegExp[]): RegExp {
  return new RegExp(patterns.map((one) => one.source).join("|"));
}
