import { createPinia } from "pinia";
import { createApp } from "vue";
import "element-plus/theme-chalk/base.css";
import "element-plus/theme-chalk/dark/css-vars.css";
import "./assets/page.css";
import App from "./App.vue";
import { i18n, speak } from "./i18n";
import { router } from "./router";

// The server was upgraded under an open tab: the parts this page knows are gone, the new page knows the new ones.
addEventListener("vite:preloadError", (event) => {
  event.preventDefault();
  location.reload();
});

await speak();
createApp(App).use(createPinia()).use(i18n).use(router).mount("#app");
