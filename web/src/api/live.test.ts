import { beforeEach, expect, test, vi } from "vitest";
import { LiveLink, type LinkState } from "./live";

class FakeSocket {
  static OPEN = 1;
  readyState = 0;
  sent: any[] = [];
  onopen = () => undefined as void;
  onclose = () => undefined as void;
  onmessage = (_: { data: string }) => undefined as void;
  send(text: string) {
    this.sent.push(JSON.parse(text));
  }
  close() {
    this.readyState = 3;
    this.onclose();
  }
  open() {
    this.readyState = 1;
    this.onopen();
  }
  say(message: object) {
    this.onmessage({ data: JSON.stringify(message) });
  }
}

let sockets: FakeSocket[];
let states: LinkState[];
let link: LiveLink;
const last = () => sockets.at(-1)!;
const handler = () => ({ events: vi.fn(), reload: vi.fn() });

beforeEach(() => {
  vi.useFakeTimers();
  sockets = [];
  states = [];
  link = new LiveLink(
    (state) => states.push(state),
    () => {
      sockets.push(new FakeSocket());
      return last() as unknown as WebSocket;
    },
  );
});

test("the first message of a topic asks for the present state, later ones only tell", () => {
  const jobs = handler();
  link.subscribe("jobs", jobs);
  link.open();
  last().open();
  expect(last().sent).toEqual([{ subscribe: ["jobs"] }]);
  last().say({ id: 5, topic: "jobs", events: [] });
  expect(jobs.reload).toHaveBeenCalledTimes(1);
  last().say({ id: 6, topic: "jobs", events: [{ type: "job", job_id: "a" }] });
  expect(jobs.reload).toHaveBeenCalledTimes(1);
  expect(jobs.events).toHaveBeenCalledWith([{ type: "job", job_id: "a" }]);
});

test("after a lost connection it asks for what it missed, logs by where they stopped", () => {
  link.subscribe("jobs", handler());
  link.subscribe("log:job-a:0", handler());
  link.open();
  last().open();
  last().say({ id: 7, topic: "jobs", events: [] });
  last().say({ id: 8, topic: "log:job-a", events: [], next: "log:job-a:1:42" });
  last().close();
  expect(states.at(-1)).toBe("lost");
  vi.advanceTimersByTime(1000);
  expect(sockets).toHaveLength(2);
  last().open();
  expect(last().sent).toEqual([{ subscribe: ["jobs", "log:job-a:1:42"], last_id: 8 }]);
});

test("too much missed means loading anew", () => {
  const jobs = handler();
  link.subscribe("jobs", jobs);
  link.open();
  last().open();
  last().say({ id: 1, topic: "jobs", events: [] });
  last().say({ id: 9000, reload: "jobs" });
  expect(jobs.reload).toHaveBeenCalledTimes(2);
});

test("two parts of a page share a topic; the last to leave ends it", () => {
  link.open();
  last().open();
  const first = link.subscribe("system", handler());
  const second = link.subscribe("system", handler());
  expect(last().sent).toEqual([{ subscribe: ["system"] }]);
  first();
  expect(last().sent).toHaveLength(1);
  second();
  expect(last().sent.at(-1)).toEqual({ unsubscribe: ["system"] });
});

test("a part that comes later to a topic is told to load", async () => {
  link.open();
  last().open();
  link.subscribe("jobs", handler());
  last().say({ id: 1, topic: "jobs", events: [] });
  const late = handler();
  link.subscribe("jobs", late);
  await Promise.resolve();
  expect(late.reload).toHaveBeenCalledTimes(1);
});

test("it waits longer and longer, within bounds, and a pause ends the waiting", () => {
  link.open();
  for (let tries = 0; tries < 12; tries += 1) {
    last().close();
    vi.advanceTimersByTime(13_000);
  }
  expect(sockets.length).toBe(13);
  link.pause();
  expect(states.at(-1)).toBe("paused");
  vi.advanceTimersByTime(60_000);
  expect(sockets.length).toBe(13);
  link.open();
  expect(sockets.length).toBe(14);
});

test("without a socket every part can be told to ask for itself", () => {
  const jobs = handler();
  link.subscribe("jobs", jobs);
  link.open();
  last().close();
  link.poll();
  expect(jobs.reload).toHaveBeenCalledTimes(1);
});

test("a hidden tab goes on with what stays on, and with nothing else", () => {
  const [page, telling, system, job] = [handler(), { ...handler(), staysOn: () => true }, handler(), handler()];
  link.subscribe("jobs", page);
  link.subscribe("jobs", telling);
  link.subscribe("system", system);
  link.subscribe("job:a", job);
  link.open();
  last().open();
  for (const [id, topic] of ["jobs", "system", "job:a"].entries()) last().say({ id, topic, events: [] });
  link.hide();
  expect(sockets).toHaveLength(1);
  expect(states.at(-1)).toBe("live");
  expect(last().sent.at(-1)).toEqual({ unsubscribe: ["system", "job:a"] });
  last().say({ id: 9, topic: "jobs", events: [{ type: "job", job_id: "a" }] });
  last().say({ id: 10, topic: "job:a", events: [{ type: "job", job_id: "a" }] }); // was on its way
  expect(telling.events).toHaveBeenCalledTimes(1);
  expect([page.events, job.events].map((heard) => heard.mock.calls.length)).toEqual([0, 0]);

  link.open();
  expect(last().sent.at(-1)).toEqual({ subscribe: ["system", "job:a"] });
  expect(page.reload).toHaveBeenCalledTimes(2); // what it missed
  last().say({ id: 11, topic: "job:a", events: [] });
  expect(job.reload).toHaveBeenCalledTimes(2);
  expect(telling.reload).toHaveBeenCalledTimes(1);
});

test("a hidden tab without anything that stays on lets go of its link", () => {
  link.subscribe("jobs", { ...handler(), staysOn: () => false });
  link.open();
  last().open();
  last().say({ id: 4, topic: "jobs", events: [] });
  link.hide();
  expect(states.at(-1)).toBe("paused");
  link.open();
  last().open();
  expect(last().sent).toEqual([{ subscribe: ["jobs"], last_id: 4 }]);
});

test("a tab that is opened in the background connects for what stays on, and comes back for it", () => {
  link.hide();
  link.subscribe("system", handler());
  expect(sockets).toHaveLength(0);
  link.subscribe("jobs", { ...handler(), staysOn: () => true });
  last().open();
  expect(last().sent).toEqual([{ subscribe: ["jobs"] }]);
  last().close();
  vi.advanceTimersByTime(1000);
  expect(sockets).toHaveLength(2);
  last().open();
  expect(last().sent).toEqual([{ subscribe: ["jobs"] }]);
});

test("logged out in a hidden tab and in again: everything is loaded anew", () => {
  const alerts = handler();
  link.subscribe("jobs", { ...handler(), staysOn: () => true });
  link.subscribe("alerts", alerts);
  link.open();
  last().open();
  last().say({ id: 1, topic: "alerts", events: [] });
  link.hide();
  last().say({ id: 50, topic: "jobs", events: [] });
  link.pause();
  link.open();
  last().open();
  last().say({ id: 60, topic: "alerts", events: [] });
  expect(alerts.reload).toHaveBeenCalledTimes(2);
});
