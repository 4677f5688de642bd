/**
 * Starts `pml page`, and signs in to it as a browser does.
 *
 * @module
 */

import type { PageEvent, PageState, Waiting } from "../../src/control/api.ts";
import { IN_PROCESS, type Running, startInProcess } from "./in_process.ts";
import { pmlCommand } from "./pml_command.ts";
import { DEADLINE_MS, within } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

/** A browser that is signed in. */
export interface PageBrowser {
  readonly headers: Readonly<Record<string, string>>;
  /** Sends a request, and returns its JSON. */
  get<T>(path: string): Promise<T>;
  /** Acts, and returns the JSON. */
  post<T>(path: string, body: unknown): Promise<T>;
  /** Returns the present state. */
  state(): Promise<PageState>;
  /** Waits for a call that waits for the user. */
  waiting(): Promise<Waiting>;
  /** Follows the events until the signal aborts. */
  events(signal: AbortSignal): AsyncGenerator<PageEvent>;
}

/** A running page. Its disposal ends it. */
export interface TestPage extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  /** The first link. */
  readonly link: string;
  readonly running: Running;
  /** Its stderr so far. */
  readonly stderr: string;
  /** Signs in with a link; by default with the first one. */
  signIn(link?: string): Promise<PageBrowser>;
}

/** Starts the page in a workspace, and waits until it listens. */
export async function openPage(
  ws: Workspace,
  { args = [], ownProcess = !IN_PROCESS, cwd = ws.path }: {
    readonly args?: readonly string[];
    readonly ownProcess?: boolean;
    readonly cwd?: string;
  } = {},
): Promise<TestPage> {
  const running = start({ ws, args, ownProcess, cwd });
  let stderr = "";
  const errors = (async () => {
    for await (const text of running.stderr.pipeThrough(new TextDecoderStream())) stderr += text;
  })();
  const reader = running.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const what = () => `pml page does not listen: ${stderr}`;
  const { value = "" } = await within(reader.read(), { ms: DEADLINE_MS, what });
  if (value === "") throw new Error(what());
  const { url: link = "", origin } = JSON.parse(value) as Record<"url" | "origin", string>;
  return {
    ...{ origin, link, running, port: Number(new URL(origin).port) },
    get stderr() {
      return stderr;
    },
    signIn: (other = link) => signIn(other),
    [Symbol.asyncDispose]: async () => {
      try {
        running.kill("SIGTERM");
      } catch {
        // it has ended
      }
      await Promise.all([running.status, errors, reader.cancel()]);
    },
  };
}

function start(
  { ws: { env }, args, ownProcess, cwd }: {
    readonly ws: Workspace;
    readonly args: readonly string[];
    readonly ownProcess: boolean;
    readonly cwd: string;
  },
): Running {
  const words = ["page", "--json", "--no-open", ...args];
  if (!ownProcess) return startInProcess({ args: words, cwd, env });
  const [program, ...first] = pmlCommand();
  return new Deno.Command(program, {
    ...{ cwd, env, clearEnv: true, args: [...first, ...words] },
    ...{ stdin: "null", stdout: "piped", stderr: "piped" },
  }).spawn();
}

/** Signs in with a link. */
export async function signIn(link: string): Promise<PageBrowser> {
  const { origin, hash } = new URL(link);
  const json = { "content-type": "application/json" };
  const response = await fetch(`${origin}/api/sign-in`, {
    method: "POST",
    headers: json,
    body: JSON.stringify({ secret: hash.slice(1) }),
  });
  const { token, error } = await response.json();
  if (error !== undefined) throw new Error(error.code);
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  const headers = { cookie, "x-pml-page": token };
  const get = async (path: string) => await (await fetch(`${origin}${path}`, { headers })).json();
  return {
    headers,
    get,
    post: async (path, body) =>
      await (await fetch(`${origin}${path}`, {
        method: "POST",
        headers: { ...headers, ...json },
        body: JSON.stringify(body),
      })).json(),
    state: () => get("/api/state"),
    waiting: async () => {
      for (;;) {
        const { waiting: [first] } = await get("/api/state") as PageState;
        if (first !== undefined) return first;
        await new Promise((done) => setTimeout(done, 50));
      }
    },
    async *events(signal) {
      const { body } = await fetch(`${origin}/api/events`, { headers, signal });
      let rest = "";
      for await (const text of body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) yield JSON.parse(line) as PageEvent;
      }
    },
  };
}

/** Answers the first call that waits, when a user can have read it. Returns the JSON. */
export async function answerOnPage<T>(
  browser: PageBrowser,
  answer: { readonly reply: string; readonly word?: string | undefined },
): Promise<T> {
  const { id, where, workspace, process: of, askedAt } = await browser.waiting();
  // A faster answer came from a program.
  await new Promise((done) => setTimeout(done, Math.max(0, askedAt + 350 - Date.now())));
  return await browser.post<T>("/api/answer", { id, where, workspace, process: of, ...answer });
}
