/**
 * A workspace and a PML home on `C:`, and PML in it as a Windows program.
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

/** How long the first answers may take on a busy machine, in milliseconds. */
export const ANSWER_MS = 90_000;

/** A workspace on `C:`. Disposing of it removes it. */
export interface WindowsScene extends AsyncDisposable {
  readonly ws: Workspace;
  /** The variables of PML in it. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts `pml stdio`. */
  open(options?: RawStdioOptions): RawStdio;
  /** Runs a command of PML to its end. */
  pml(args: readonly string[], options?: RunOptions): Promise<ProgramEnd>;
  /** Runs a command of PML on a console: types an answer where a question is shown. */
  onConsole(args: readonly string[], typed: readonly TerminalInput[]): Promise<CommandResult>;
}

/** Makes a workspace on `C:`. */
export async function makeScene(wine: Wine, options: WorkspaceOptions = {}): Promise<WindowsScene> {
  const folder = `${wine.drive}/try`;
  await Deno.mkdir(folder, { recursive: true });
  Deno.env.set("TMPDIR", folder);
  const ws = await makeWorkspace(options);
  await writeFiles(ws.home, { "config.yaml": "limits:\n  first_list_ms: 60000\n" });
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
