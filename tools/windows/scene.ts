/**
 * Creates a workspace and a PML home on `C:`, and runs PML there as a Windows program.
 *
 * @module
 */

import { RawStdio, type RawStdioOptions } from "../../tests/kit/raw_stdio.ts";
import { type CommandResult, runPmlOnTerminal, type TerminalInput } from "../../tests/kit/run.ts";
import {
  makeWorkspace,
  type Workspace,
  type WorkspaceOptions,
  writeFiles,
} from "../../tests/kit/workspace.ts";
import type { ProgramEnd, RunOptions, Wine } from "./wine.ts";

/** The time limit for answers, in milliseconds; the first ones take long on a busy machine. */
export const ANSWER_MS = 90_000;

/** A workspace on `C:`, which is removed when it is disposed. */
export interface WindowsScene extends AsyncDisposable {
  readonly ws: Workspace;
  /** The environment variables of PML. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts `pml stdio`. */
  open(options?: RawStdioOptions): RawStdio;
  /** Runs a command of PML to its end. */
  pml(args: readonly string[], options?: RunOptions): Promise<ProgramEnd>;
  /** Runs a command of PML on a console, and answers its questions. */
  onConsole(args: readonly string[], typed: readonly TerminalInput[]): Promise<CommandResult>;
}

/** Creates a workspace on `C:`. */
export async function makeScene(wine: Wine, options: WorkspaceOptions = {}): Promise<WindowsScene> {
  const folder = `${wine.drive}/try`;
  await Deno.mkdir(folder, { recursive: true });
  Deno.env.set("TMPDIR", folder);
  const ws = await makeWorkspace(options);
  await writeFiles(ws.home, {
    "config.yaml": "limits:\n  first_list_ms: 60000\n  inline_bytes: 0\n",
  });
  const trusted = ws.env.PML_TRUST;
  const env = wine.environment({
    cwd: ws.path,
    env: {
      PML_HOME: wine.windowsPath(ws.home),
      PML_WORKSPACE: wine.windowsPath(ws.path),
      PML_REGISTRIES: "none",
      PML_TEST_TAG: ws.tag,
      ...trusted === undefined ? {} : { PML_TRUST: wine.windowsPath(trusted) },
      ...options.env,
    },
  });
  return {
    ws,
    env,
    open: (more = {}) =>
      new RawStdio({ ...ws, env }, { command: wine.pml("stdio"), cwd: ws.path, ...more }),
    pml: (args, more = {}) =>
      wine.run(wine.pml(...args), { cwd: ws.path, ...more, env: { ...env, ...more.env } }),
    onConsole: (args, typed) =>
      runPmlOnTerminal({ ...ws, env }, args, { command: wine.pml(), typed, ms: ANSWER_MS }),
    [Symbol.asyncDispose]: async () => {
      await wine.end();
      await ws[Symbol.asyncDispose]();
    },
  };
}
