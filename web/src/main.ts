import { createPinia } from "pinia";
import { createApp } from "vue";
import "element-plus/theme-chalk/base.css";
import "element-plus/theme-chalk/dark/css-vars.css";
import "./assets/page.css";
import App from "./App.vue";
import { i18n, speak } from "./i18n";
import { router } from "./router";

await speak();
createApp(App).use(createPinia()).use(i18n).use(router).mount("#app");
