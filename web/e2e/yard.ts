// A server of its own in a throwaway folder, reached by HTTP, ended by its own process.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const RUNYARD = resolve(__dirname, "../../.venv/bin/runyard");
const BASE = "/api/v1/training";

export async function until<T>(what: string, look: () => T | Promise<T>, limitMs = 60_000): Promise<NonNullable<T>> {
  const limit = Date.now() + limitMs;
  for (;;) {
    const found = await Promise.resolve()
      .then(look)
      .catch(() => null);
    if (found) return found as NonNullable<T>;
    if (Date.now() > limit) throw new Error(`not within ${limitMs} ms: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

// None that the kernel gives to connections: while a server is away nobody may get its port.
const PORTS = { first: 24_400, count: 1500 };

async function isFree(port: number): Promise<boolean> {
  return new Promise((done) => {
    const probe = createServer();
    probe.once("error", () => done(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => done(true)));
  });
}

async function freePort(): Promise<number> {
  for (;;) {
    const port = PORTS.first + Math.floor(Math.random() * PORTS.count);
    if (await isFree(port)) return port;
  }
}

export class Yard {
  folder = mkdtempSync(join(tmpdir(), "runyard-e2e-"));
  url = "";
  key = "";
  private port = 0;
  private process: ChildProcess | null = null;

  async start(...flags: string[]): Promise<this> {
    this.port ||= await freePort();
    this.url = `http://127.0.0.1:${this.port}`;
    this.process = spawn(RUNYARD, ["server", "--port", String(this.port), "--data-dir", this.folder, "--max-concurrent", "4", ...flags], {
      stdio: "ignore",
      env: { ...process.env, RUNYARD_GATE_CPU: "100", RUNYARD_GATE_MEMORY: "100", RUNYARD_GATE_DISK: "100", RUNYARD_DATA_DIR: this.folder },
    });
    await until("the server answers", async () => (await fetch(`${this.url}/readyz`)).ok);
    this.key = readFileSync(join(this.folder, "admin.key"), "utf8").trim();
    return this;
  }

  async ask(method: string, path: string, body?: unknown): Promise<any> {
    const answer = await fetch(this.url + BASE + path, {
      method,
      headers: { Authorization: `Bearer ${this.key}`, "Content-Type": "application/json" },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : null;
  }

  async submit(job: Record<string, unknown>): Promise<string> {
    return (await this.ask("POST", "/jobs", { cpu_cores: 0.1, memory_gb: 0.1, gpu_count: 0, ...job })).job_id;
  }

  async reach(job: string, ...statuses: string[]): Promise<any> {
    return until(`${job} is ${statuses.join(" or ")}`, async () => {
      const found = await this.ask("GET", `/jobs/${job}`);
      return statuses.includes(found.status) ? found : null;
    });
  }

  /** Its command is as far as saying this: `running` is told before a shell has set its traps. */
  async says(job: string, words: string): Promise<void> {
    await until(`${job} says ${words}`, async () => (await this.ask("GET", `/jobs/${job}/logs?tail=100`)).logs.some((line: string) => line.includes(words)));
  }

  /** As a crash: what it did not write is lost, what it started lives. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const ended = this.process;
    if (!ended || ended.exitCode !== null || ended.signalCode !== null) return;
    const gone = new Promise((done) => ended.once("exit", done));
    ended.kill(signal);
    await gone;
    this.process = null;
  }

  /** Every job is ended with it. */
  async stop(): Promise<void> {
    if (!this.process) await this.start();
    await this.end("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 50, retryDelay: 100 }); // its last process may still write
  }
}
