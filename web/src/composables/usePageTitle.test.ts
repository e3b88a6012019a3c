// What the tab says.
import { mount } from "@vue/test-utils";
import { createPinia, setActivePinia } from "pinia";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Component, defineComponent, h, nextTick } from "vue";
import { createMemoryHistory, createRouter, type RouteRecordRaw, RouterView } from "vue-router";
import { emptyRoutes } from "@/components/testing";
import { i18n, speak } from "@/i18n";
import { routes } from "@/router";
import { useSystemStore } from "@/stores/system";
import { titleOfJob, useDocumentTitle, usePageTitle, useRunningTitle } from "./usePageTitle";

const ICON = () => document.querySelector('link[rel="icon"]')!.getAttribute("href");
let drawn: ReturnType<typeof mount> | undefined;

const Jobs = defineComponent(() => {
  useRunningTitle("jobs.title", (running) => (running ? "primary" : null));
  return () => h("p");
});
const Job = defineComponent(() => {
  usePageTitle(() => titleOfJob({ name: "llama", status: "running", progress: 63.4 }));
  return () => h("p");
});

beforeEach(() => {
  document.head.innerHTML = '<link rel="icon" href="./favicon.svg">';
  setActivePinia(createPinia());
});

afterEach(() => {
  drawn?.unmount();
  drawn = undefined;
});

async function open(path: string) {
  await speak("en");
  const views: Record<string, Component> = { jobs: Jobs, job: Job };
  const shown = emptyRoutes.map((route) =>
    views[String(route.name)] ? ({ ...route, component: views[String(route.name)] } as RouteRecordRaw) : route,
  );
  const router = createRouter({ history: createMemoryHistory(), routes: shown });
  await router.push(path);
  const Page = defineComponent(() => {
    useDocumentTitle();
    return () => h(RouterView);
  });
  drawn = mount(Page, { global: { plugins: [i18n, router] } });
  return router;
}

const worded = i18n.global.te as (key: string) => boolean;

test("every page that can be reached has a title in both languages", async () => {
  for (const language of ["en", "zh"] as const) {
    await speak(language);
    for (const route of routes.filter((one) => !one.redirect)) expect(worded(String(route.meta?.title)), String(route.path)).toBe(true);
  }
});

test("the page's name, how many run, how far a job is; the icon is plain again afterwards", async () => {
  const router = await open("/queue");
  expect(document.title).toBe("Queue - Runyard");
  await router.push("/jobs");
  expect(document.title).toBe("Jobs - Runyard");
  useSystemStore().status = { counts: { running: 1, scheduled: 1 } } as any;
  await nextTick();
  expect(document.title).toBe("2 running - Jobs - Runyard");
  await router.push("/jobs/job-a");
  await nextTick();
  expect(document.title).toBe("63 % llama - Runyard");
  expect(ICON()).toContain("data:image/svg+xml");
  await router.push("/queue");
  await nextTick();
  expect([document.title, ICON()]).toEqual(["Queue - Runyard", "./favicon.svg"]);
  await speak("zh");
  await nextTick();
  expect(document.title).toBe("队列 - Runyard");
});

test("a job that ended says how, not how far", () => {
  expect(titleOfJob({ name: "a", status: "failed", progress: 63 })).toEqual({ text: "✕ a", tone: "danger" });
});
