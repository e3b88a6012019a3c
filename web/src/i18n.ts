// The page's own words by vue-i18n, the server's codes by Wording; both in the chosen language.
import elementEnglish from "element-plus/es/locale/lang/en";
import { computed, ref, shallowRef } from "vue";
import { createI18n } from "vue-i18n";
import { speakSpans } from "./domain/duration";
import { Wording, type ServerWords } from "./domain/wording";

export const LANGUAGES = ["en", "zh"] as const;
export type Language = (typeof LANGUAGES)[number];
const KEPT = "runyard.language";

export const i18n = createI18n({ legacy: false, locale: "en", fallbackLocale: "en", messages: {} as Record<string, any> });
export const language = ref<Language>("en");
export const elementLocale = shallowRef<any>();
const serverWords = shallowRef<ServerWords>();

/** Worded anew when the language changes. */
export const wording = computed(() => new Wording(serverWords.value as ServerWords, language.value));

function preferred(): Language {
  const kept = localStorage.getItem(KEPT);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

// Each language is a part of its own: nobody loads the other. (Element Plus has its English in its code.)
const WORDS = {
  en: () => Promise.all([import("./words/en"), import("./words/server/en.json"), { default: elementEnglish }]),
  zh: () => Promise.all([import("./words/zh"), import("./words/server/zh.json"), import("element-plus/es/locale/lang/zh-cn")]),
};

export async function speak(wanted: Language = preferred()): Promise<void> {
  const [page, server, element] = await WORDS[wanted]();
  i18n.global.setLocaleMessage(wanted, page.default);
  serverWords.value = server.default as ServerWords;
  elementLocale.value = element.default;
  speakSpans(wanted);
  language.value = wanted;
  i18n.global.locale.value = wanted as "en";
  document.documentElement.lang = wanted === "zh" ? "zh-CN" : "en";
}

export async function choose(wanted: Language): Promise<void> {
  localStorage.setItem(KEPT, wanted);
  await speak(wanted);
}
