// Values that live in the address, so that a link shows the same. Changes of one moment are one change of the address.
import { computed, type WritableComputedRef } from "vue";
import { useRoute, useRouter } from "vue-router";

export function useQueryValues() {
  const route = useRoute();
  const router = useRouter();
  let waiting: Record<string, string | undefined> | null = null;

  function set(name: string, value: string | null): void {
    if (waiting) {
      waiting[name] = value || undefined;
      return;
    }
    waiting = { [name]: value || undefined };
    queueMicrotask(() => {
      const query = { ...route.query, ...waiting };
      waiting = null;
      void router.replace({ query, hash: route.hash });
    });
  }

  /** "" when it is not there. */
  function value(name: string): WritableComputedRef<string> {
    return computed({
      get: () => {
        const found = route.query[name];
        return String((Array.isArray(found) ? found[0] : found) ?? "");
      },
      set: (wanted) => set(name, wanted),
    });
  }

  return { value };
}
