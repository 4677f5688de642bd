/**
 * The parts of the process that commands use. Tests run several commands in one process, each with
 * its own working folder, variables, input and output.
 *
 * @module
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { resolve } from "node:path";
import { processVariables } from "../config/env.ts";
import type { StdioHost } from "../transport/stdio/stdio.ts";

/** Times of questions on a terminal, in milliseconds. */
export interface TypingPauses {
  /** How long a question is shown before keys answer it. */
  readonly shown: number;
  /** How long the terminal must be quiet until earlier input is discarded. */
  readonly quiet: number;
  /** The same after an unknown key: the user may be typing a word, whose next letters come slowly. */
  readonly word: number;
}

/** The times for real users; tests use shorter ones. */
export const TYPING_PAUSES: TypingPauses = { shown: 1_000, quiet: 250, word: 600 };

/** The process of a command. */
export interface CommandProcess {
  /** The words after `pml`. */
  readonly args: readonly string[];
  /** The working folder, an absolute path. */
  readonly cwd: string;
  /** The environment variables. */
  readonly variables: Readonly<Record<string, string>>;
  readonly stdin: Pick<typeof Deno.stdin, "readable" | "isTerminal" | "setRaw">;
  readonly stdout: Pick<typeof Deno.stdout, "writeSync" | "isTerminal">;
  readonly stderr: Pick<typeof Deno.stderr, "writeSync" | "isTerminal">;
  /** The file for reads of the terminal that do not block; undefined if only `stdin` reads it. */
  readonly terminalFile: string | undefined;
  readonly typingPauses: TypingPauses;
  readonly consoleSize: typeof Deno.consoleSize;
  /** The pipes of the client of `pml stdio`; undefined for standard input and standard output. */
  readonly pipes: StdioHost["pipes"];
  readonly addSignalListener: typeof Deno.addSignalListener;
  readonly removeSignalListener: typeof Deno.removeSignalListener;
  /** Calls a function with each promise rejection without a handler, until it is disposed. */
  listenForRejections(listener: (event: PromiseRejectionEvent) => void): Disposable;
}

/** The process that this code runs in. */
const REAL_PROCESS: CommandProcess = {
  get args() {
    return Deno.args;
  },
  get cwd() {
    return Deno.cwd();
  },
  get variables() {
    return processVariables();
  },
  stdin: Deno.stdin,
  stdout: Deno.stdout,
  stderr: Deno.stderr,
  // On other systems, /dev/stdin opens the same blocking file.
  terminalFile: Deno.build.os === "linux" ? "/dev/stdin" : "/dev/tty",
  typingPauses: TYPING_PAUSES,
  consoleSize: Deno.consoleSize,
  pipes: undefined,
  addSignalListener: Deno.addSignalListener,
  removeSignalListener: Deno.removeSignalListener,
  listenForRejections(listener) {
    globalThis.addEventListener("unhandledrejection", listener);
    return {
      [Symbol.dispose]: () => globalThis.removeEventListener("unhandledrejection", listener),
    };
  },
};

const running = new AsyncLocalStorage<CommandProcess>();

/** Returns the process of the command that calls this. */
export function commandProcess(): CommandProcess {
  return running.getStore() ?? REAL_PROCESS;
}

/** Returns a function that writes log lines to stderr in `runIn()`; undefined in the real process. */
export function logWriter(): ((line: string) => void) | undefined {
  const stderr = running.getStore()?.stderr;
  return stderr && ((line) => void stderr.writeSync(new TextEncoder().encode(`${line}\n`)));
}

/** Returns the absolute path of a path that the user typed. */
export function typedPath(path: string): string {
  return resolve(commandProcess().cwd, path);
}

/** Runs a command with these parts in place of those of the real process. */
export function runIn<T>(parts: CommandProcess, command: () => T): T {
  return running.run(parts, command);
}
