import { expect, test } from "vitest";
import en from "@/words/server/en.json";
import zh from "@/words/server/zh.json";
import { type ServerWords, Wording } from "./wording";

const english = new Wording(en as ServerWords, "en");
const chinese = new Wording(zh as ServerWords, "zh");

test("a reason is a sentence in the reader's language", () => {
  const given = { code: "max_concurrent", params: { running: 2, limit: 2 } };
  expect(english.reason(given)).toContain("2");
  expect(chinese.reason(given)).toBe("已有 2 个任务运行, 上限 2");
});

test("every reason, alert and plan has no hole left open, whatever it is given", () => {
  for (const words of [english, chinese]) {
    for (const code of Object.keys(en.reasons)) expect(words.reason({ code, params: {} })).not.toMatch(/[{}]/);
    for (const code of Object.keys(en.alerts)) expect(words.alert({ code, params: {} })).not.toMatch(/[{}]/);
    for (const code of Object.keys(en.plans)) expect(words.plan({ code, params: {} })).not.toMatch(/[{}]/);
  }
});

test("an unknown code of a newer server is shown as it is, with its parameters", () => {
  expect(english.reason({ code: "brand_new", params: { a: 1 } })).toBe("brand_new (a 1)");
});

test("amounts of memory are gigabytes, of other things numbers", () => {
  const told = english.reason({ code: "not_enough", params: { resource: "memory", wanted: 32, free: 0.5, total: 64 } });
  expect(told).toContain("32GB");
  expect(told).toContain("512MB");
});

test("the grace that is left is in whole seconds", () => {
  expect(english.reason({ code: "waiting_for_step", params: { left_s: 30.2 } })).toContain("31 s");
});

test("refusals use the server's own words in English and ours in Chinese", () => {
  expect(english.error("job_not_found", { job: "job-a" }, "There is no job job-a.")).toBe("There is no job job-a.");
  expect(chinese.error("job_not_found", { job: "job-a" }, "There is no job job-a.")).toBe("没有任务 job-a。");
});

test("an executor that is away says why, and a job of ranks which failed first", () => {
  const away = (params: object) => english.reason({ code: "executor_unavailable", params });
  expect(away({ executor: "docker", why: "no_engine", at: "/run/x.sock" })).toContain("no container engine listens at /run/x.sock");
  expect(away({ executor: "ray" })).toContain("no server offers it now");
  expect(away({ executor: "ray", why: "brand_new" })).toContain("(brand_new)");
  expect(chinese.reason({ code: "exit_code", params: { code: 1, rank: 3 } })).toBe("rank 3 最先失败: 退出码 1");
});
