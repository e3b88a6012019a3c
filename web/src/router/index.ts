import { createRouter, createWebHistory, type RouteRecordRaw } from "vue-router";
import { HOME } from "@/api/client";
import { useSession } from "@/stores/session";

// Lists are plural, one thing is singular. Sweeps and pipelines will have routes of their own. `title` is what the tab says, in words/.
export const routes: RouteRecordRaw[] = [
  { path: "/", redirect: { name: "now" } },
  { path: "/now", name: "now", component: () => import("@/views/NowView.vue"), meta: { title: "now.title" } },
  { path: "/jobs", name: "jobs", component: () => import("@/views/JobListView.vue"), meta: { title: "jobs.title" } },
  {
    path: "/jobs/:jobRef/:tab?",
    name: "job",
    component: () => import("@/views/JobDetailView.vue"),
    props: true,
    meta: { title: "job.title" },
  },
  { path: "/queue", name: "queue", component: () => import("@/views/QueueView.vue"), meta: { title: "queue.title" } },
  { path: "/alerts", name: "alerts", component: () => import("@/views/AlertListView.vue"), meta: { title: "alerts.title" } },
  { path: "/machines", name: "machines", component: () => import("@/views/MachineListView.vue"), meta: { title: "machines.title" } },
  {
    path: "/settings/:section?",
    name: "settings",
    component: () => import("@/views/SettingsView.vue"),
    props: true,
    meta: { title: "settings.title" },
  },
  { path: "/login", name: "login", component: () => import("@/views/LoginView.vue"), meta: { open: true, title: "login.title" } },
  { path: "/:rest(.*)*", name: "not-found", component: () => import("@/views/NotFoundView.vue"), meta: { title: "notFound.title" } },
];

const ROWS_MS = 1500;

export const router = createRouter({
  history: createWebHistory(HOME.pathname),
  routes,
  scrollBehavior: async (to, from, kept) => {
    if (!kept) return to.path === from.path ? false : { top: 0 };
    // The rows come a moment after the page: wait for as much of it as there was.
    const until = Date.now() + ROWS_MS;
    while (document.documentElement.scrollHeight < kept.top + innerHeight && Date.now() < until) await new Promise(requestAnimationFrame);
    return kept;
  },
});

router.beforeEach(async (to) => {
  const session = useSession();
  if (!session.asked) await session.find();
  if (to.meta.open || session.who) return true;
  return { name: "login", query: to.fullPath === "/now" ? {} : { to: to.fullPath }, hash: to.hash };
});
