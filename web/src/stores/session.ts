// Who is logged in.
import { defineStore } from "pinia";
import { computed, ref } from "vue";
import { api, body, onCsrfChanged, onLoggedOut, useCsrf, type Schemas } from "@/api/client";
import { Problem } from "@/api/problem";

export type Who = Schemas["SessionAnswer"];

export const useSession = defineStore("session", () => {
  const who = ref<Who | null>(null);
  const asked = ref(false);
  const expired = ref(false); // somebody was logged in and the server knows of it no more
  const mayWrite = computed(() => who.value !== null && who.value.role !== "viewer");
  const isAdmin = computed(() => who.value?.role === "admin");

  function know(found: Who | null): void {
    who.value = found;
    asked.value = true;
    if (found) expired.value = false;
    useCsrf(found?.csrf ?? "");
  }

  /** Whether somebody is logged in already. */
  async function find(): Promise<boolean> {
    try {
      know((await body(api.GET("/api/v1/training/session"))) ?? null);
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status !== 401) throw problem;
      know(null);
    }
    return who.value !== null;
  }

  async function logIn(proof: { key: string } | { token: string }): Promise<void> {
    know((await body(api.POST("/api/v1/training/session", { body: { key: null, token: null, ...proof } }))) ?? null);
  }

  async function logOut(): Promise<void> {
    await api.DELETE("/api/v1/training/session");
    know(null);
  }

  onLoggedOut(() => {
    if (who.value) expired.value = true;
    know(null);
  });
  onCsrfChanged(async () => void (await find()));
  return { who, asked, expired, mayWrite, isAdmin, find, logIn, logOut };
});
