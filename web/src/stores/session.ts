// Who is logged in.
import { defineStore } from "pinia";
import { computed, ref } from "vue";
import { addressOf, BASE, onLoggedOut, useCsrf } from "@/api/client";
import { Problem, Unreachable } from "@/api/problem";

export interface Who {
  name: string;
  role: "admin" | "user" | "viewer";
  expires_at: string | null;
  csrf: string;
}

export const useSession = defineStore("session", () => {
  const who = ref<Who | null>(null);
  const asked = ref(false);
  const mayWrite = computed(() => who.value !== null && who.value.role !== "viewer");
  const isAdmin = computed(() => who.value?.role === "admin");

  function know(found: Who | null): void {
    who.value = found;
    asked.value = true;
    useCsrf(found?.csrf ?? "");
  }

  async function ask(method: string, body?: object): Promise<Who | null> {
    let answer: Response;
    try {
      answer = await fetch(addressOf(`${BASE}/session`), {
        method,
        credentials: "same-origin",
        headers: { "Content-Type": "application/json", "X-CSRF-Token": who.value?.csrf ?? "" },
        body: body && JSON.stringify(body),
      });
    } catch {
      throw new Unreachable();
    }
    if (answer.ok) return answer.status === 204 ? null : ((await answer.json()) as Who);
    throw new Problem(answer.status, await answer.json().catch(() => ({})));
  }

  /** Whether somebody is logged in already. */
  async function find(): Promise<boolean> {
    try {
      know(await ask("GET"));
    } catch (problem) {
      if (!(problem instanceof Problem) || problem.status !== 401) throw problem;
      know(null);
    }
    return who.value !== null;
  }

  async function logIn(proof: { key: string } | { token: string }): Promise<void> {
    know(await ask("POST", proof));
  }

  async function logOut(): Promise<void> {
    await ask("DELETE");
    know(null);
  }

  onLoggedOut(() => know(null));
  return { who, asked, mayWrite, isAdmin, find, logIn, logOut };
});
