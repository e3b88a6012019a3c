// The one live connection of this tab, and how fresh what is shown is.
import { defineStore } from "pinia";
import { onScopeDispose, ref } from "vue";
import { LiveLink, type LinkState, type TopicHandler } from "@/api/live";

const POLL_MS = 5000;

export const useLink = defineStore("link", () => {
  const state = ref<LinkState>("connecting");
  const staleSince = ref<number | null>(null);
  const link = new LiveLink((told) => {
    if (told === "live") staleSince.value = null;
    else if (state.value === "live") staleSince.value = Date.now();
    state.value = told;
  });

  let wanted = false;
  let cared = false;

  function follow(): void {
    wanted = true;
    if (!document.hidden) link.open();
    if (cared) return;
    cared = true;
    setInterval(() => {
      if (wanted && !document.hidden && state.value !== "live") link.poll();
    }, POLL_MS);
    document.addEventListener("visibilitychange", () => (document.hidden || !wanted ? link.pause() : link.open()));
  }

  /** Nobody is logged in: until `follow`. */
  function rest(): void {
    wanted = false;
    link.pause();
  }

  /** For the life of the calling component. */
  function subscribe(topic: string, handler: TopicHandler): () => void {
    const end = link.subscribe(topic, handler);
    onScopeDispose(end, true);
    return end;
  }

  return { state, staleSince, follow, rest, subscribe };
});
