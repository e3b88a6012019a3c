import type { components } from "./schema";

type Shape = components["schemas"]["Problem"];

/** What the server answered when it refused: `{code, message, params, request_id}`. */
export class Problem extends Error {
  readonly code: string;
  readonly params: Record<string, unknown>;
  readonly requestId: string;
  readonly status: number;

  constructor(status: number, shape: Partial<Shape>) {
    super(shape.message ?? `HTTP ${status}`);
    this.status = status;
    this.code = shape.code ?? "unknown";
    this.params = shape.params ?? {};
    this.requestId = shape.request_id ?? "";
  }
}

/** The server could not be reached at all. */
export class Unreachable extends Problem {
  constructor() {
    super(0, { code: "server_unreachable", message: "The server does not answer." });
  }
}
