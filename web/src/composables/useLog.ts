// One log: opened at its end, followed while it is written, the rest paged in where somebody looks.
import { onScopeDispose, ref, shallowRef, watch, type Ref } from "vue";
import { api, body, type Schemas } from "@/api/client";
import type { LiveEvent } from "@/api/live";
import { Problem } from "@/api/problem";
import { LogLines, type LogPage } from "@/domain/logLines";
import { useLink } from "@/stores/link";

export interface LogSource {
  job: string;
  attempt: number | null; // null: the newest
  rank: number;
  service: string;
}

const TAIL = 1000;
const PAGE = 500;
const AROUND = 100;
const POLL_MS = 1500;
const POLL_BYTES = 256 * 1024;

export function useLog(source: Ref<LogSource>) {
  const lines = shallowRef(new LogLines());
  const version = ref(0); // lines are no reactive things: this says that they changed
  const state = ref<"loading" | "there">("loading");
  const problem = shallowRef<Problem | null>(null);
  const ended = ref(false);
  const attempt = ref<number | null>(null); // which one is shown
  const newer = ref<number | null>(null); // an attempt that began since
  const heard = new Set<(from: number, to: number) => void>();
  const link = useLink();
  let turn = 0;
  let stop: () => void = () => undefined;
  let frame = 0;
  let centre = 0;
  let told = 0; // up to this byte
  const asked = new Set<number>();

  function changed(): void {
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      lines.value.trim(centre);
      version.value += 1;
    });
  }

  function query(more: Record<string, number | string | boolean>) {
    const { job, rank, service } = source.value;
    const number = source.value.attempt ?? attempt.value;
    return {
      params: {
        path: { ref: job },
        query: { ...(number ? { attempt: number } : {}), ...(rank ? { rank } : {}), ...(service ? { service } : {}), ...more },
      },
    };
  }

  async function load(more: Record<string, number | string | boolean>): Promise<Schemas["LogsAnswer"]> {
    return (await body(api.GET("/api/v1/training/jobs/{ref}/logs", query(more)))) as Schemas["LogsAnswer"];
  }

  async function open(): Promise<void> {
    const mine = (turn += 1);
    stop();
    state.value = "loading";
    attempt.value = newer.value = null;
    try {
      const page = await load({ tail: TAIL, outline: true });
      if (mine !== turn) return;
      const found = new LogLines();
      found.begin(page as LogPage);
      lines.value = found;
      centre = found.rows.count;
      attempt.value = page.attempt;
      ended.value = page.ended;
      problem.value = null;
      state.value = "there";
      asked.clear();
      follow(mine, page.outline?.resume ?? page.size);
      version.value += 1;
    } catch (error) {
      if (mine !== turn) return;
      if (!(error instanceof Problem)) throw error;
      problem.value = error;
      state.value = "there";
    }
  }

  function follow(mine: number, offset: number): void {
    const { job, rank, service } = source.value;
    if (service) return void (stop = poll(mine, offset));
    let first = true;
    told = offset;
    const place = attempt.value ? `${attempt.value}:${offset}` : `${offset}`;
    stop = link.subscribe(`log:${job}${rank ? `/${rank}` : ""}:${place}`, {
      events: (events) => mine === turn && events.forEach(hear),
      reload: () => {
        if (!first && mine === turn) void open();
        first = false;
      },
    });
  }

  function hear(event: LiveEvent): void {
    if (event.type === "text") {
      attempt.value ??= event.attempt;
      // A late message of a subscription before this one tells what is known already.
      if (event.attempt !== attempt.value || event.offset < told) return;
      if (event.offset > told) return void open();
      told = event.next_offset;
      add(event.text);
    } else if (event.type === "gap") {
      void open(); // more was written than is kept, faster than it could be told
    } else if (event.type === "attempt") {
      ended.value = true;
      newer.value = event.number;
    } else if (event.type === "end") ended.value = true;
  }

  function add(text: string): void {
    const [from, to] = lines.value.append(text);
    if (to > from) for (const handler of heard) handler(from, to);
    changed();
  }

  /** What the live link does not carry: services. Until it has ended and nothing more of it comes. */
  function poll(mine: number, from: number): () => void {
    const decoder = new TextDecoder();
    let offset = from;
    let over = ended.value;
    let looking = false;
    const timer = setInterval(() => void look(), POLL_MS);

    async function read(): Promise<ArrayBuffer> {
      const part = query({ raw: true, offset, length: POLL_BYTES });
      const answer = await api.GET("/api/v1/training/jobs/{ref}/logs", { ...part, parseAs: "arrayBuffer" });
      return answer.data as unknown as ArrayBuffer;
    }

    async function look(): Promise<void> {
      if (looking || document.hidden) return;
      looking = true;
      try {
        const data = await read();
        if (mine !== turn) return;
        offset += data.byteLength;
        if (data.byteLength) add(decoder.decode(data, { stream: true }));
        else if (over) {
          clearInterval(timer);
          ended.value = true;
        } else over = (await load({ tail: 1 })).ended; // what it wrote last is read after this
      } catch (error) {
        if (!(error instanceof Problem)) throw error; // the next look tries again
      } finally {
        looking = false;
      }
    }
    return () => clearInterval(timer);
  }

  /** Load what is not there of these rows. */
  async function need(first: number, last: number): Promise<void> {
    centre = Math.floor((first + last) / 2);
    const { rows } = lines.value;
    for (let row = Math.max(0, first); row <= Math.min(last, rows.count - 1); row += 1) {
      const found = rows.at(row);
      if (found.kind === "gap" || lines.value.text(found.key) !== undefined) continue;
      const from = Math.max(0, Math.floor(found.number) - AROUND);
      if (![...asked].some((begun) => begun <= found.number && found.number < begun + PAGE)) await fetchPage(from);
      return;
    }
  }

  async function fetchPage(from: number): Promise<void> {
    const mine = turn;
    asked.add(from);
    try {
      const page = await load({ from, limit: PAGE, outline: true });
      if (mine !== turn) return;
      lines.value.put(page as LogPage);
      problem.value = null;
      version.value += 1;
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      if (mine === turn) problem.value = error;
    } finally {
      asked.delete(from);
    }
  }

  /** For those who want to know of every line that became whole. */
  function onLines(handler: (from: number, to: number) => void): void {
    heard.add(handler);
  }

  watch(source, (now, before) => JSON.stringify(now) !== JSON.stringify(before) && void open(), { immediate: true });
  onScopeDispose(() => {
    turn += 1;
    stop();
    cancelAnimationFrame(frame);
  });
  return { lines, version, state, problem, ended, attempt, newer, open, need, load, onLines, query };
}

export type OpenLog = ReturnType<typeof useLog>;
