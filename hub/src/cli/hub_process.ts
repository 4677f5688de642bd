/**
 * The parts of the process that commands use. Tests run several commands in one process, each with
 * its own working folder, variables and output.
 *
 * @module
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { resolve } from "node:path";

/** The process of a command. */
export interface HubProcess {
  /** The working folder, an absolute path. */
  readonly cwd: string;
  readonly stdin: Pick<typeof Deno.stdin, "isTerminal" | "read">;
  readonly stdout: Pick<typeof Deno.stdout, "writeSync" | "isTerminal">;
  readonly stderr: Pick<typeof Deno.stderr, "writeSync" | "isTerminal">;
  readonly addSignalListener: typeof Deno.addSignalListener;
  readonly removeSignalListener: typeof Deno.removeSignalListener;
  /** Returns an environment variable; undefined if it is not set. */
  variable(name: string): string | undefined;
}

/** The process of Deno. */
const DENO_PROCESS: HubProcess = {
  get cwd() {
    return Deno.cwd();
  },
  stdin: Deno.stdin,
  stdout: Deno.stdout,
  stderr: Deno.stderr,
  addSignalListener: Deno.addSignalListener,
  removeSignalListener: Deno.removeSignalListener,
  variable: (name) => Deno.env.get(name),
};

const running = new AsyncLocalStorage<HubProcess>();

/** Returns the process of the running command. */
export function hubProcess(): HubProcess {
  return running.getStore() ?? DENO_PROCESS;
}

/** Resolves a path that the user typed. */
export function typedPath(path: string): string {
  return resolve(hubProcess().cwd, path);
}

/** Runs a command with the given process instead of Deno's. */
export function runWith<T>(commandProcess: HubProcess, command: () => T): T {
  return running.run(commandProcess, command);
}
