// A choice of this person in this browser.
import { ref, watch, type Ref } from "vue";

export function useStored<T>(key: string, first: T): Ref<T> {
  const found = ref(read(key, first)) as Ref<T>;
  watch(found, (now) => localStorage.setItem(key, JSON.stringify(now)), { deep: true });
  return found;
}

function read<T>(key: string, first: T): T {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(key) ?? "null");
    return typeof kept === typeof first && kept !== null && Array.isArray(kept) === Array.isArray(first) ? (kept as T) : first;
  } catch {
    return first;
  }
}
