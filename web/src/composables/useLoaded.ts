// Load something, say how that goes, and load it again when asked.
import { onScopeDispose, ref, shallowRef } from "vue";
import { Problem } from "@/api/problem";

export function useLoaded<T>(load: () => Promise<T>) {
  const data = shallowRef<T>();
  const problem = shallowRef<Problem | null>(null);
  const loading = ref(false);
  let turn = 0;
  onScopeDispose(() => (turn += 1));

  async function again(): Promise<void> {
    const mine = (turn += 1);
    loading.value = true;
    try {
      const found = await load();
      if (mine !== turn) return;
      data.value = found;
      problem.value = null;
    } catch (error) {
      if (mine !== turn) return;
      if (!(error instanceof Problem)) throw error;
      problem.value = error;
    } finally {
      if (mine === turn) loading.value = false;
    }
  }

  return { data, problem, loading, again };
}
