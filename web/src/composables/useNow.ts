// One clock for the page: ages and times left tick together, once a second.
import { readonly, ref } from "vue";

const now = ref(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

export function useNow() {
  return readonly(now);
}
