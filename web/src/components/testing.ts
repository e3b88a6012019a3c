// How component tests draw a component: with both kinds of words, the stores and the router.
import { mount } from "@vue/test-utils";
import { createPinia, setActivePinia } from "pinia";
import type { Component } from "vue";
import { i18n, speak } from "@/i18n";
import { createMemoryHistory, createRouter, type RouteRecordRaw } from "vue-router";
import { routes } from "@/router";

// Without what they show: a view that is still being loaded when the test is over would be an error.
export const emptyRoutes = routes.map((route) =>
  route.redirect ? route : { ...route, component: { render: () => null } },
) as RouteRecordRaw[];

export async function draw(component: Component, props: Record<string, unknown>, language: "en" | "zh" = "en") {
  await speak(language);
  const router = createRouter({ history: createMemoryHistory(), routes: emptyRoutes }); // without its questions to the server
  const pinia = createPinia();
  setActivePinia(pinia);
  return { pinia, drawn: mount(component, { props, attachTo: document.body, global: { plugins: [pinia, i18n, router] } }) };
}
