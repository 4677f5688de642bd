/**
 * The state of the page: the values from the server, the connection, the view, and the announced
 * texts.
 *
 * @module
 */

import { computed, effect, signal } from "@preact/signals";
import type { CallRow, PageEvent, PageState, Waiting, Workspace } from "../src/control/api.ts";
import { ApiError, dropToken, hasToken, openEvents, signIn } from "./http.ts";
import { refuseServiceWorkers } from "./workers.ts";

/** The connection to `pml page`. */
export type Connection =
  | { readonly kind: "connecting" | "open" | "lost" }
  | { readonly kind: "signed-out"; readonly reason: string; readonly hint?: string | undefined };

/** A text about an action. It disappears after `NOTICE_MS`, unless it is an error. */
export interface Notice {
  readonly text: string;
  readonly isError: boolean;
  /** The command that undoes the action. */
  readonly undo?: string | undefined;
}

const WORKSPACE_KEY = "pml-page-workspace";
const VIEWS = ["overview", "servers", "tools", "activity", "context", "rules"] as const;
/** The pauses before the page connects again after a lost connection. */
const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS] = [500, 5_000];
/**
 * How long a stream may have no line before the page connects again, in milliseconds. The server sends
 * a line at least every 15 s.
 */
const SILENCE_MS = 40_000;
const NOTICE_MS = 15_000;
/** How long the page shows that a process has ended, in milliseconds. */
const ENDED_MS = 30_000;

/** A view of the page. */
export type View = typeof VIEWS[number];

export const connection = signal<Connection>({ kind: "connecting" });
export const state = signal<PageState | undefined>(undefined);
/** Whether actions can reach the server. */
export const isConnected = computed(() => connection.value.kind === "open");
/** Processes that ended a short time ago. */
export const endedProcesses = signal<readonly { readonly name: string }[]>([]);
export const notice = signal<Notice | undefined>(undefined);
/** The chosen workspace, or an empty text for all. */
export const chosenWorkspace = signal(localStorage.getItem(WORKSPACE_KEY) ?? "");
export const route = signal(parseRoute(location.hash));

/** The questions in the order in which this page first received them, so that no question moves. */
export const waiting = signal<readonly Waiting[]>([]);

/** All workspaces. */
export const workspaces = computed<readonly Workspace[]>(() => state.value?.workspaces ?? []);
/** The workspaces that are shown. */
export const shownWorkspaces = computed(() => {
  const chosen = workspaces.value.filter(({ root }) => root === chosenWorkspace.value);
  return chosen.length === 0 ? workspaces.value : chosen;
});
/** The first shown workspace: the views of tools, rules and costs show only one. */
export const shownRoot = computed(() => shownWorkspaces.value[0]?.root);

const callListeners = new Set<(row: CallRow) => void>();

/** Passes each new state of a tool call to a listener. Returns a function that removes the listener. */
export function onCall(listener: (row: CallRow) => void): () => void {
  callListeners.add(listener);
  return () => callListeners.delete(listener);
}

/** Shows and announces a text. */
export function announce(text: string, { isError = false, undo }: Partial<Notice> = {}): void {
  const shown: Notice = { text, isError, undo };
  notice.value = shown;
  if (!isError) setTimeout(() => notice.value === shown && (notice.value = undefined), NOTICE_MS);
}

/** Shows an error. If the sign-in has ended, the whole page shows how to sign in. */
export function announceError(error: unknown): void {
  if (error instanceof ApiError && error.status === 401) return signOut(error);
  const hint = error instanceof ApiError && error.hint !== undefined ? ` ${error.hint}` : "";
  announce(`${error instanceof Error ? error.message : String(error)}.${hint}`.replace("..", "."), {
    isError: true,
  });
}

/** Returns the address of a view. */
export function addressOf(view: View, params: Readonly<Record<string, string>> = {}): string {
  const search = new URLSearchParams(params).toString();
  return `#/${view}${search === "" ? "" : `?${search}`}`;
}

function parseRoute(hash: string): { readonly view: View; readonly params: URLSearchParams } {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?");
  return {
    view: VIEWS.find((view) => view === path) ?? "overview",
    params: new URLSearchParams(search),
  };
}

/** Signs in if the address has a secret, and follows the server for as long as the page is open. */
export async function start(): Promise<void> {
  addEventListener("hashchange", () => route.value = parseRoute(location.hash));
  effect(() => localStorage.setItem(WORKSPACE_KEY, chosenWorkspace.value));
  const secret = location.hash.slice(1);
  const isLink = secret !== "" && !secret.startsWith("/");
  if (isLink) {
    // The secret must not stay in the history.
    history.replaceState(null, "", "/#/overview");
    route.value = parseRoute("");
  }
  try {
    await refuseServiceWorkers();
  } catch (error) {
    return signOut(error);
  }
  if (isLink) {
    try {
      await signIn(secret);
    } catch (error) {
      // An old link in a browser that is still signed in does no harm.
      const isOld = error instanceof ApiError && error.code === "LINK_EXPIRED";
      if (!isOld || !hasToken()) return signOut(error);
    }
  }
  if (!hasToken()) return signOut(undefined);
  await follow();
}

function signOut(error: unknown): void {
  // If another tab has signed in meanwhile, this page starts again with that token.
  if (dropToken() === "newer") return location.reload();
  const { message, hint } = error instanceof ApiError ? error : {
    message: error instanceof Error ? error.message : "This tab has no sign-in.",
    hint: undefined,
  };
  connection.value = { kind: "signed-out", reason: message, hint };
}

async function follow(): Promise<void> {
  let pause = FIRST_PAUSE_MS;
  while (connection.peek().kind !== "signed-out") {
    const { hadEvents, error } = await followOnce();
    if (error instanceof ApiError && error.status === 401) return signOut(error);
    if (connection.peek().kind === "signed-out") return;
    connection.value = { kind: "lost" };
    if (hadEvents) pause = FIRST_PAUSE_MS;
    await new Promise((resolve) => setTimeout(resolve, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

/** Handles the events of one stream until it ends. */
async function followOnce(): Promise<{ readonly hadEvents: boolean; readonly error?: unknown }> {
  let hadEvents = false;
  try {
    for await (const event of readEvents()) {
      if (connection.peek().kind === "signed-out") return { hadEvents };
      hadEvents = true;
      takeEvent(event);
    }
    return { hadEvents };
  } catch (error) {
    return { hadEvents, error };
  }
}

async function* readEvents(): AsyncGenerator<PageEvent> {
  const stop = new AbortController();
  let timer = setTimeout(() => stop.abort(), SILENCE_MS);
  const reader = (await openEvents(stop.signal)).getReader();
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), SILENCE_MS);
      const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
      rest = lines.pop() ?? "";
      yield* lines.filter((line) => line.trim() !== "").map((line) => JSON.parse(line));
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}

function takeEvent(event: PageEvent): void {
  if (connection.peek().kind !== "open") connection.value = { kind: "open" };
  switch (event.type) {
    case "state":
      return takeState(event.state);
    case "call":
      return callListeners.forEach((listener) => listener(event.call));
    case "ended":
      return showEnded(nameOf(event.process));
    case "beat":
      return;
  }
}

/** Shows for a while that a process has ended. */
function showEnded(name: string): void {
  const entry = { name };
  endedProcesses.value = [...endedProcesses.peek(), entry];
  setTimeout(
    () => endedProcesses.value = endedProcesses.peek().filter((one) => one !== entry),
    ENDED_MS,
  );
}

function takeState(next: PageState): void {
  // The questions that have no place on the page yet: first all, then the new ones.
  const unplaced = new Map(next.waiting.map((question) => [keyOf(question), question]));
  const earlier = waiting.peek().flatMap((question) => unplaced.get(keyOf(question)) ?? []);
  for (const question of earlier) unplaced.delete(keyOf(question));
  waiting.value = [...earlier, ...unplaced.values()];
  state.value = next;
}

/** Returns the key of a question. */
export function keyOf({ where, process = "", id }: Waiting): string {
  return `${where} ${process} ${id}`;
}

/** Returns the name of a process that has ended, if the present state still contains it. */
function nameOf(id: string): string {
  const process = state.peek()?.processes.find((one) => one.id === id);
  if (process === undefined) return "A process of PML";
  const name = state.peek()?.workspaces.find(({ root }) => root === process.workspace)?.name ??
    process.workspace;
  return `pml ${process.command} (process ${process.pid}) of ${name}`;
}
