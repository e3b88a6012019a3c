// One WebSocket a tab: topics are counted, the link comes back by itself and asks for what it missed.
import { BASE, addressOf } from "./client";

export type LinkState = "connecting" | "live" | "lost" | "paused";
export type LiveEvent = { type: string } & Record<string, any>;

export interface TopicHandler {
  /** Called with what happened; the first call of a subscription may be empty: load the present state then. */
  events(events: LiveEvent[]): void;
  /** Too much was missed, or this is the first message: load the present state anew. */
  reload(): void;
  /** Whether it goes on hearing while the tab is hidden. */
  staysOn?(): boolean;
  /** Now and then while the tab is hidden: what its title needs, and no more. */
  glance?(): void;
}

interface Message {
  id?: number;
  topic?: string;
  events?: LiveEvent[];
  next?: string;
  reload?: string;
  error?: { code: string };
}

interface Topic {
  name: string; // as in messages: without the place to begin at
  begin: string; // as asked at first
  next: string | null; // where to go on, of logs and metrics
  loaded: boolean;
  handlers: Set<TopicHandler>;
}

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 10_000;
const COUNTED = new Set(["jobs", "job", "alerts"]); // caught up by last_id

export class LiveLink {
  private socket: WebSocket | null = null;
  private topics = new Map<string, Topic>();
  private lastId: number | null = null;
  private delay = FIRST_DELAY_MS;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private wanted = false;
  private hidden = false;
  private kept: Set<Topic> | null = null; // of a hidden tab: the only topics it goes on with

  constructor(
    private readonly told: (state: LinkState) => void,
    private readonly make: () => WebSocket = () => new WebSocket(addressOf(`${BASE}/monitor/ws`).replace(/^http/, "ws"), ["runyard"]),
  ) {}

  open(): void {
    this.hidden = false;
    this.wanted = true;
    this.widen();
    if (!this.socket && !this.timer) this.connect();
  }

  /** For a hidden tab: goes on only for handlers that stay on; the next `open` catches up with the rest. */
  hide(): void {
    this.hidden = true;
    const all = [...this.topics.values()];
    const kept = new Set(all.filter((topic) => [...topic.handlers].some(staysOn)));
    if (!kept.size) return this.pause();
    const heard = this.kept ?? new Set(all);
    const [left, joined] = [
      all.filter((topic) => heard.has(topic) && !kept.has(topic)),
      all.filter((topic) => kept.has(topic) && !heard.has(topic)),
    ];
    this.kept = kept;
    this.wanted = true;
    if (left.length) this.send({ unsubscribe: left.map(placeOf) });
    if (joined.length) this.send({ subscribe: joined.map(placeOf) });
    if (!this.socket && !this.timer) this.connect();
  }

  /** Everybody hears again; who missed something loads anew. */
  private widen(): void {
    const kept = this.kept;
    if (!kept) return;
    this.kept = null;
    const left = [...this.topics.values()].filter((topic) => !kept.has(topic));
    forget(left);
    for (const topic of kept) for (const handler of [...topic.handlers]) if (!staysOn(handler)) handler.reload();
    if (left.length) this.send({ subscribe: left.map(placeOf) });
  }

  /** Until the next `open`, which catches up. */
  pause(): void {
    if (this.kept) forget(this.topics.values());
    this.kept = null;
    this.wanted = false;
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
    this.socket?.close();
    this.socket = null;
    this.told("paused");
  }

  /** Without a link (a proxy may forbid sockets) the page asks for everything now and then. */
  poll(): void {
    for (const topic of this.topics.values()) for (const handler of [...topic.handlers]) handler.reload();
  }

  glance(): void {
    for (const topic of this.topics.values()) for (const handler of [...topic.handlers]) handler.glance?.();
  }

  /** `topic` as the server names it, with the place to begin at if it has one. Returns the end. */
  subscribe(topic: string, handler: TopicHandler): () => void {
    const name = nameOf(topic);
    let found = this.topics.get(name);
    if (!found) {
      found = { name, begin: topic, next: null, loaded: false, handlers: new Set() };
      this.topics.set(name, found);
      if (!this.kept) this.send({ subscribe: [topic] });
    } else if (found.loaded) {
      queueMicrotask(() => found!.handlers.has(handler) && handler.reload());
    }
    found.handlers.add(handler);
    if (this.hidden && staysOn(handler)) this.hide();
    return () => this.leave(found!, handler);
  }

  private leave(topic: Topic, handler: TopicHandler): void {
    topic.handlers.delete(handler);
    if (topic.handlers.size || this.topics.get(topic.name) !== topic) return;
    this.topics.delete(topic.name);
    if (!this.kept || this.kept.has(topic)) this.send({ unsubscribe: [placeOf(topic)] });
  }

  private connect(): void {
    this.timer = null;
    this.told("connecting");
    const socket = this.make();
    this.socket = socket;
    socket.onopen = () => {
      if (socket !== this.socket) return;
      this.delay = FIRST_DELAY_MS;
      this.told("live");
      this.greet();
    };
    socket.onmessage = (message) => {
      if (socket === this.socket) this.hear(JSON.parse(String(message.data)) as Message);
    };
    socket.onclose = () => {
      if (socket !== this.socket) return;
      this.socket = null;
      if (this.wanted) this.comeBack();
    };
  }

  private comeBack(): void {
    this.told("lost");
    const spread = this.delay * (0.75 + Math.random() / 2);
    this.timer = setTimeout(() => this.connect(), spread);
    this.delay = Math.min(this.delay * 2, LONGEST_DELAY_MS);
  }

  private greet(): void {
    const all = [...(this.kept ?? this.topics.values())];
    const subscribe = all.map(placeOf);
    if (!subscribe.length) return;
    const missed = this.lastId !== null && all.some((topic) => topic.loaded && COUNTED.has(kindOf(topic.name)));
    this.send(missed ? { subscribe, last_id: this.lastId } : { subscribe });
  }

  private hear(message: Message): void {
    if (message.id !== undefined) this.lastId = Math.max(this.lastId ?? 0, message.id);
    const topic = this.topics.get(message.reload ?? message.topic ?? "");
    if (!topic || message.error || (this.kept && !this.kept.has(topic))) return;
    if (message.next) topic.next = message.next;
    const first = !topic.loaded;
    topic.loaded = true;
    for (const handler of [...topic.handlers].filter((one) => !this.kept || staysOn(one))) {
      if (first || message.reload) handler.reload();
      if (message.events?.length) handler.events(message.events);
    }
  }

  private send(message: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }
}

function staysOn(handler: TopicHandler): boolean {
  return handler.staysOn?.() ?? false;
}

/** `lastId` went on without them: their next message says to load anew. */
function forget(topics: Iterable<Topic>): void {
  for (const topic of topics) if (COUNTED.has(kindOf(topic.name))) topic.loaded = false;
}

function placeOf(topic: Topic): string {
  return topic.next ?? topic.begin;
}

/** log:ID:OFFSET and metrics:ID:STEP are told as log:ID and metrics:ID. */
function nameOf(topic: string): string {
  return topic.split(":").slice(0, 2).join(":");
}

function kindOf(name: string): string {
  return name.split(":", 1)[0] ?? "";
}
