// The one place that calls fetch. Turns every refusal into a Problem.
import createClient, { type Middleware } from "openapi-fetch";
import { Problem, Unreachable } from "./problem";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** Where the page lives: everything is relative to it, so that a sub-path works. */
export const HOME = new URL(document.baseURI);
export const BASE = "/api/v1/training";

let csrf = "";
let whenLoggedOut: () => void = () => undefined;
let whenCsrfChanged: () => Promise<void> = async () => undefined;

export function useCsrf(token: string): void {
  csrf = token;
}

export function onLoggedOut(handler: () => void): void {
  whenLoggedOut = handler;
}

/** Somebody logged in anew in another tab: `handler` learns the new token. */
export function onCsrfChanged(handler: () => Promise<void>): void {
  whenCsrfChanged = handler;
}

const SAFE = new Set(["GET", "HEAD"]);

const unsent = new WeakMap<Request, Request>(); // what was sent, to send it once more

const session: Middleware = {
  onRequest({ request }) {
    if (SAFE.has(request.method)) return request;
    const again = request.clone();
    request.headers.set("X-CSRF-Token", csrf);
    unsent.set(request, again);
    return request;
  },
  async onResponse({ request, response }) {
    if (response.ok) return undefined;
    const problem = await problemOf(response);
    const again = unsent.get(request);
    if (problem.code !== "wrong_csrf_token" || !again) throw problem;
    await whenCsrfChanged();
    again.headers.set("X-CSRF-Token", csrf);
    const answered = await fetch(again);
    if (answered.ok) return answered;
    throw await problemOf(answered);
  },
  onError() {
    return new Unreachable();
  },
};

async function problemOf(response: Response): Promise<Problem> {
  if (response.status === 401) whenLoggedOut();
  try {
    return new Problem(response.status, await response.json());
  } catch {
    return new Problem(response.status, {});
  }
}

export const api = createClient<paths>({ baseUrl: HOME.href.replace(/\/$/, ""), credentials: "same-origin" });
api.use(session);

/** The answer's body; refusals were thrown before. */
export async function body<T>(asked: Promise<{ data?: T }>): Promise<T> {
  return (await asked).data as T;
}

/** A list, with how many there are in all and where the next page begins. */
export interface Page<T> {
  items: T[];
  total: number | null;
  next: string | null;
}

export async function page<T>(asked: Promise<{ data?: T[]; response: Response }>): Promise<Page<T>> {
  const { data, response } = await asked;
  const total = response.headers.get("X-Total-Count");
  return { items: data ?? [], total: total === null ? null : Number(total), next: response.headers.get("X-Next-Cursor") };
}

export function addressOf(path: string): string {
  return new URL(path.replace(/^\//, ""), HOME).href;
}
