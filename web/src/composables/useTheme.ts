// system, light or dark; public/theme.js does the same before the first paint.
import { readonly, ref } from "vue";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const KEPT = "runyard.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

const theme = ref<Theme>((localStorage.getItem(KEPT) as Theme | null) ?? "system");
const dark = ref(document.documentElement.classList.contains("dark"));

function apply(): void {
  dark.value = theme.value === "dark" || (theme.value === "system" && system.matches);
  document.documentElement.classList.toggle("dark", dark.value);
}
system.addEventListener("change", apply);

export function useTheme() {
  function choose(wanted: Theme): void {
    theme.value = wanted;
    localStorage.setItem(KEPT, wanted);
    apply();
  }
  return { theme: readonly(theme), dark: readonly(dark), choose };
}
