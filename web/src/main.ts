import { createPinia } from "pinia";
import { createApp } from "vue";
import "element-plus/theme-chalk/base.css";
import "element-plus/theme-chalk/dark/css-vars.css";
import "./assets/page.css";
import App from "./App.vue";
import { i18n, speak } from "./i18n";
import { router } from "./router";
import { useSession } from "./stores/session";

// The server was upgraded under an open tab: the parts this page knows are gone, the new page knows the new ones.
addEventListener("vite:preloadError", (event) => {
  event.preventDefault();
  location.reload();
});

const app = createApp(App).use(createPinia());

/** What the first page needs and nothing else waits for: asked for at once, not one after the other. */
async function prepare(): Promise<void> {
  const { matched } = router.resolve(router.options.history.location);
  const views = matched
    .map((record) => record.components?.default)
    .filter((view): view is () => Promise<unknown> => typeof view === "function");
  await Promise.all([
    speak(),
    useSession()
      .find()
      .catch(() => undefined),
    ...views.map((view) => view().catch(() => undefined)),
  ]);
}

await prepare();
app.use(i18n).use(router).mount("#app");
