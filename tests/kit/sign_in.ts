/**
 * Signs in with `pml login --no-browser`: reads the printed address, and opens it as the user's
 * browser does.
 *
 * @module
 */

import { browse, type BrowseOptions, type BrowserPage } from "./browser.ts";
import { IN_PROCESS, pidOf, type Running, startInProcess } from "./in_process.ts";
import { type Command, pmlCommand } from "./pml_command.ts";
import type { CommandResult } from "./run.ts";
import { DEADLINE_MS, until, within } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

/** The options of a sign-in. */
export interface SignInOptions extends BrowseOptions {
  /** Further arguments of `pml login SERVER --no-browser`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Another program instead of PML. */
  readonly command?: Command;
  /** Whether the command runs as a separate process: for tests of signals and its end. */
  readonly ownProcess?: boolean;
}

/** A `pml login` that printed its address. Its disposal ends it. */
export interface Login extends AsyncDisposable {
  readonly address: string;
  readonly pid: number;
  /** Types a line, as a user pastes an address. */
  paste(line: string): Promise<void>;
  /** Waits for the end. */
  ended(): Promise<CommandResult>;
}

/** The result of a sign-in. */
export interface SignedIn extends CommandResult {
  readonly browsed: BrowserPage;
}

/** Starts `pml login`, and returns when it printed the address. Throws if it ends before that. */
export async function beginLogin(
  ws: Workspace,
  server: string,
  options: SignInOptions = {},
): Promise<Login> {
  const child = started(ws, ["login", server, "--no-browser", ...options.args ?? []], options);
  const shown = { stdout: "", stderr: "" };
  const over = Promise.all([
    child.status,
    readInto(child.stdout, (text) => shown.stdout += text),
    readInto(child.stderr, (text) => shown.stderr += text),
  ]);
  let isOver = false;
  over.then(() => isOver = true);
  const address = () => /^https?:\/\/\S+(?=\n)/m.exec(shown.stdout + shown.stderr)?.[0];
  await until(() => address() !== undefined || isOver);
  const printed = address();
  if (printed === undefined) {
    throw new Error(`pml login ends: ${shown.stdout}${shown.stderr}`);
  }
  const writer = child.stdin.getWriter();
  const close = () => writer.close().catch(() => {}); // it may have ended
  return {
    address: printed,
    get pid() {
      return pidOf(child);
    },
    paste: async (line) => await writer.write(new TextEncoder().encode(`${line}\n`)),
    ended: async () => {
      const what = () => `pml login ${server} does not end: ${JSON.stringify(shown)}`;
      const [{ code }] = await within(over, { ms: DEADLINE_MS, what });
      return { code, ...shown };
    },
    [Symbol.asyncDispose]: async () => {
      await close();
      try {
        child.kill(child.pid === undefined ? "SIGTERM" : "SIGKILL");
      } catch {
        // it has ended
      }
      await over;
    },
  };
}

/** Signs in, or is refused: returns the output of the command and the page that the user saw. */
export async function signIn(
  ws: Workspace,
  server: string,
  options: SignInOptions = {},
): Promise<SignedIn> {
  await using login = await beginLogin(ws, server, options);
  const browsed = await browse(login.address, options);
  return { ...await login.ended(), browsed };
}

/** Starts the command in this process or in a separate one. */
function started(
  ws: Workspace,
  words: readonly string[],
  { env = {}, command, ownProcess = !IN_PROCESS }: SignInOptions,
): Running {
  const place = { cwd: ws.path, env: { ...ws.env, ...env } };
  if (command === undefined && !ownProcess) return startInProcess({ args: words, ...place });
  const [program, ...args] = command ?? pmlCommand();
  return new Deno.Command(program, {
    ...place,
    args: [...args, ...words],
    ...{ clearEnv: true, stdin: "piped", stdout: "piped", stderr: "piped" },
  }).spawn();
}

async function readInto(
  stream: ReadableStream<Uint8Array>,
  take: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }));
}
