/**
 * Runs a command of PML to its end: with pipes as a script does, or on a pseudo terminal as a user
 * does.
 *
 * @module
 */

import {
  canRunHub,
  IN_PROCESS,
  type InProcessOptions,
  type Running,
  startHubInProcess,
  startInProcess,
  startOnTerminalInProcess,
} from "./in_process.ts";
import { type Command, HUB, pmlCommand, sourceCommand } from "./pml_command.ts";
import { DEADLINE_MS, waitUntil, within } from "./wait.ts";
import type { Workspace } from "./workspace.ts";

/** The options of a run. */
export interface RunOptions {
  /** The content of stdin. */
  readonly stdin?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Another program instead of PML. */
  readonly command?: Command;
  /** Whether the command runs as a separate process: for tests of signals, start and end. */
  readonly ownProcess?: boolean;
  /** Whether questions on a terminal discard keys for as long as for users; false by default. */
  readonly isUnhurried?: boolean;
  readonly ms?: number;
}

/** The exit code and output of a run. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A text on the screen, and the user's input, followed by Enter. Or another action. */
export type TerminalInput = readonly [
  sees: string | RegExp,
  types: string | (() => Promise<unknown>),
];

/** Runs `pml ARGS` in a workspace, without a terminal. */
export async function runPml(
  workspace: Workspace,
  args: readonly string[],
  options: RunOptions = {},
): Promise<CommandResult> {
  const child = started(workspace, args, options);
  try {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(options.stdin ?? "")).catch(() => {}); // not read
    await writer.close().catch(() => {}); // ended already
    const what = () => `pml ${args.join(" ")} does not end`;
    const all = Promise.all([child.status, textOf(child.stdout), textOf(child.stderr)]);
    const [{ code }, stdout, stderr] = await within(all, { ms: options.ms, what });
    return { code, stdout, stderr };
  } finally {
    killQuietly(child);
  }
}

/**
 * Runs `pml ARGS` on a terminal and types each text once its prompt is on the screen. All output of
 * the command is in `stdout`. It is a pseudo terminal for a separate process: if the test needs
 * another program, echo, colours or Ctrl-C.
 */
export async function runPmlOnTerminal(
  workspace: Workspace,
  args: readonly string[],
  {
    typed = [],
    // After a trust, PML offers the table of the servers, which has its own tests.
    ifAsked = args[0] === "trust" ? [/Start th.* now, .*\[N\] no/, "n"] : undefined,
    echo = false,
    ...options
  }: RunOptions & {
    readonly typed?: readonly TerminalInput[];
    /** Questions that may follow these, and the answer to each. */
    readonly ifAsked?: readonly [sees: RegExp, types: string];
    /** Whether the terminal echoes input that no program hides; Python's always does. */
    readonly echo?: boolean;
  } = {},
): Promise<CommandResult> {
  const child = canBeInProcess(workspace, args, { typed, echo, ...options })
    ? startOnTerminalInProcess(placeOf(workspace, args, options))
    : spawn(
      workspace,
      await onTerminal([...options.command ?? pmlCommand(), ...args], echo),
      options,
    );
  const screen = { text: "" };
  const reading = Promise.all([readInto(child.stdout, screen), readInto(child.stderr, screen)]);
  const writer = child.stdin.getWriter();
  try {
    const last = await type(typed, { screen, writer, ms: options.ms });
    if (ifAsked !== undefined) {
      await answerUntilEnd(ifAsked, { screen, writer, child, from: last, ms: options.ms });
    }
    const what = () => `pml ${args.join(" ")} does not end, the screen shows: ${screen.text}`;
    const { code } = await within(child.status, { ms: options.ms, what });
    await reading;
    return { code, stdout: screen.text, stderr: "" };
  } finally {
    killQuietly(child);
    await writer.close().catch(() => {}); // ended already
    await reading;
  }
}

function canBeInProcess(
  workspace: Workspace,
  args: readonly string[],
  { command, ownProcess = !IN_PROCESS, env = {}, typed, echo }: RunOptions & {
    readonly typed: readonly TerminalInput[];
    readonly echo: boolean;
  },
): boolean {
  return command === undefined && !ownProcess && !echo &&
    (env.NO_COLOR ?? workspace.env.NO_COLOR) === "1" &&
    !NEEDS_PROCESS.has(args[0] ?? "") && typed.every(([, text]) => text !== "\x03");
}

/**
 * Returns the command that runs another on a pseudo terminal: `script` of util-linux, or Python.
 */
async function onTerminal(command: readonly string[], echo: boolean): Promise<string[]> {
  if (/util-linux/.test(await versionOf("script"))) {
    const line = command.map((part) => `'${part.replaceAll("'", `'\\''`)}'`).join(" ");
    const lines = ["--echo", echo ? "always" : "never"];
    return ["script", "--quiet", "--return", ...lines, "--command", line, "/dev/null"];
  }
  if (/^Python 3/.test(await versionOf("python3"))) {
    const program = "import os, pty, sys\n" +
      "sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    return ["python3", "-c", program, ...command];
  }
  throw new Error(
    "No pseudo terminal: neither `script` (util-linux) nor `python3` is on PATH, and this " +
      "test needs one; install either",
  );
}

async function versionOf(program: string): Promise<string> {
  try {
    const { stdout } = await new Deno.Command(program, { args: ["--version"] }).output();
    return new TextDecoder().decode(stdout);
  } catch {
    return ""; // it does not exist
  }
}

/** Commands that pass their output to another program, or print without the modules of PML. */
const NEEDS_PROCESS: ReadonlySet<string> = new Set(["publish", "-v", "--version", "-h", "--help"]);

/** Starts a command in this process or in a separate one. */
function started(workspace: Workspace, args: readonly string[], options: RunOptions): Running {
  const { command, ownProcess = !IN_PROCESS } = options;
  const place = placeOf(workspace, args, options);
  if (command === undefined && !ownProcess && !NEEDS_PROCESS.has(args[0] ?? "")) {
    return startInProcess(place);
  }
  if (command === HUB && !ownProcess && canRunHub(args)) return startHubInProcess(place);
  // The program of the hub is in a checkout only.
  const own = args[0] === "publish" ? sourceCommand() : pmlCommand();
  return spawn(workspace, [...command ?? own, ...args], options);
}

function placeOf(
  workspace: Workspace,
  args: readonly string[],
  { cwd = workspace.path, env, isUnhurried = false }: RunOptions,
): InProcessOptions {
  return { args, cwd, env: { ...workspace.env, ...env }, isUnhurried };
}

/** Reads a stream to its end. Replaces bytes that are not UTF-8. */
async function textOf(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<string> {
  return await new Response(stream).text();
}

function spawn(
  workspace: Workspace,
  [program = "", ...args]: readonly string[],
  { cwd, env }: RunOptions,
): Deno.ChildProcess {
  return new Deno.Command(program, {
    args,
    cwd: cwd ?? workspace.path,
    env: { ...workspace.env, ...env },
    clearEnv: true,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** Types each text once its prompt is shown. Returns where the text after the last prompt begins. */
async function type(
  typed: readonly TerminalInput[],
  { screen, writer, ms = DEADLINE_MS }: {
    readonly screen: { readonly text: string };
    readonly writer: WritableStreamDefaultWriter<Uint8Array>;
    readonly ms?: number;
  },
): Promise<number> {
  let from = 0;
  for (const [sees, types] of typed) {
    const shown = () => {
      const text = screen.text.slice(from);
      return typeof sees === "string" ? text.includes(sees) : sees.test(text);
    };
    if (!await waitUntil(shown, ms)) {
      throw new Error(`The screen never shows ${sees}, only: ${screen.text.slice(from)}`);
    }
    from = screen.text.length;
    if (typeof types !== "string") {
      await types();
      continue;
    }
    // Ctrl-C and Ctrl-D are keys that need no Enter.
    const isKey = ["\x03", "\x04"].includes(types);
    const written = writer.write(new TextEncoder().encode(isKey ? types : `${types}\r`));
    await written.catch((error) => {
      // The program has ended. A test sees this in its output and exit code.
      if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    });
  }
  return from;
}

/** Answers a question as often as it is shown, until the program ends. */
async function answerUntilEnd(
  [sees, types]: readonly [sees: RegExp, types: string],
  { screen, writer, child, from, ms = DEADLINE_MS }: {
    readonly screen: { readonly text: string };
    readonly writer: WritableStreamDefaultWriter<Uint8Array>;
    readonly child: Running;
    /** Where the text begins that may contain the question. */
    readonly from: number;
    readonly ms?: number;
  },
): Promise<void> {
  let isOver = false;
  child.status.then(() => isOver = true);
  for (let at = from; !isOver; at = screen.text.length) {
    const isAsked = () => sees.test(screen.text.slice(at));
    if (!await waitUntil(() => isOver || isAsked(), ms)) {
      throw new Error(`The screen never shows ${sees}, only: ${screen.text.slice(at)}`);
    }
    await writer.write(new TextEncoder().encode(isOver ? "" : types)).catch(() => {}); // ended
  }
}

async function readInto(
  stream: ReadableStream<Uint8Array>,
  screen: { text: string },
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) screen.text += decoder.decode(chunk, { stream: true });
}

function killQuietly(child: Running): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // it has ended already
  }
}
