/**
 * Runs a command of PML that follows something, and collects its output until it is disposed.
 *
 * @module
 */

import { pmlCommand } from "./pml_command.ts";
import type { Workspace } from "./workspace.ts";

/** A command that runs, and its stdout so far. */
export interface FollowedOutput extends AsyncDisposable {
  readonly text: string;
}

/** Starts `pml ARGS` as a separate process. */
export function followOutput(
  { path: cwd, env }: Workspace,
  args: readonly string[],
): FollowedOutput {
  const [program = "", ...own] = [...pmlCommand(), ...args];
  const child = new Deno.Command(program, {
    ...{ args: own, cwd, env, clearEnv: true },
    ...{ stdin: "null", stdout: "piped", stderr: "null" },
  }).spawn();
  let text = "";
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) text += part;
  })();
  return {
    get text() {
      return text;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGINT");
      await child.status;
      await reading;
    },
  };
}
