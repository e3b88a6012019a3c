// The one live connection of this tab, and how fresh what is shown is.
import { defineStore } from "pinia";
import { onScopeDispose, ref } from "vue";
import { LiveLink, type LinkState, type TopicHandler } from "@/api/live";

const POLL_MS = 5000;
const GLANCE_MS = 20_000; // of a hidden tab; browsers may make it a minute

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

  function turn(): void {
    if (!wanted) link.pause();
    else if (document.hidden) link.hide();
    else link.open();
  }

  function follow(): void {
    wanted = true;
    turn();
    if (cared) return;
    cared = true;
    setInterval(() => {
      if (wanted && !document.hidden && state.value !== "live") link.poll();
    }, POLL_MS);
    setInterval(() => {
      if (wanted && document.hidden) link.glance();
    }, GLANCE_MS);
    document.addEventListener("visibilitychange", turn);
  }

  /** Nobody is logged in: until `follow`. */
  function rest(): void {
    wanted = false;
    turn();
  }

  /** For the life of the calling component. */
  function subscribe(topic: string, handler: TopicHandler): () => void {
    const end = link.subscribe(topic, handler);
    onScopeDispose(end, true);
    return end;
  }

  return { state, staleSince, follow, rest, subscribe };
});
