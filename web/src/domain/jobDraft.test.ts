import { expect, test } from "vitest";
import { cloneOf, commandText, readPairs, withField, writePairs } from "./jobDraft";

test("a clone takes wishes, not results", () => {
  const job = { name: "a", status: "failed", cpu_cores: 2, ports: 0, labels: {}, env_vars: { A: "1" }, job_type: "single", depends_on: [{ job: "job-b", on: "end" }] };
  expect(cloneOf(job)).toEqual({ draft: { name: "a", cpu_cores: 2, env_vars: { A: "1" }, depends_on: [{ job: "job-b", on: "end" }] }, again: [] });
});

test("a clone takes over no masked secret, wherever it is, and says which are to be given again", () => {
  const job = {
    command: "echo '***'",
    env_vars: { TOKEN: "***", DB: "postgres://ann:***@db/runs", A: "1" },
    prefetch: ["hf://gpt2", "https://ann:***@host/data.tar"],
    services: [{ name: "board", command: ["echo", "***"], env_vars: { API_KEY: "***", PORT: "1" } }],
    notify: [{ type: "webhook", url: "https://host/a", secret: "***", events: ["failed"] }, { type: "feishu", url: "https://host/***" }],
  };
  const { draft, again } = cloneOf(job);
  expect(draft).toEqual({
    command: "echo '***'",
    env_vars: { A: "1" },
    prefetch: ["hf://gpt2"],
    services: [{ name: "board", command: ["echo", "***"], env_vars: { PORT: "1" } }],
    notify: [{ type: "webhook", url: "https://host/a", events: ["failed"] }, { type: "feishu" }],
  });
  expect(again).toEqual(["env_vars.TOKEN", "env_vars.DB", "prefetch[1]", "services[0].env_vars.API_KEY", "notify[0].secret", "notify[1].url"]);
});

test("a field that held only secrets is left out whole", () => {
  expect(cloneOf({ env_vars: { TOKEN: "***" } })).toEqual({ draft: {}, again: ["env_vars.TOKEN"] });
});

test("an emptied field is left out", () => {
  expect(withField({ name: "a", image: "b" }, "image", "")).toEqual({ name: "a" });
});

test("pairs keep what stands behind the first equals sign", () => {
  expect(readPairs("A=1=2\nnothing\n B =x")).toEqual({ A: "1=2", B: "x" });
  expect(writePairs({ A: "1", B: 2 })).toBe("A=1\nB=2");
});

test("a command given as a list can be pasted into a shell", () => {
  expect(commandText(["python", "-c", "print('a b')"])).toBe("python -c 'print('\\''a b'\\'')'");
});
