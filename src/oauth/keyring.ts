/**
 * Stores secrets in the keyring of the system, through the system's command-line program.
 *
 * @module
 */

import { basename, delimiter, dirname, isAbsolute } from "node:path";
import { browserEnvironment } from "../config/child_environment.ts";
import type { LoadedConfig } from "../config/config.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { Keyring } from "./token_store.ts";
import { type ProgramResult, runProgram } from "../sandbox/process.ts";
import { findProgram, searchPath } from "../sandbox/search_path.ts";

/** The time limit of a program in milliseconds. The user may have to unlock the keyring. */
const LOOK_MS = 30_000;
const MOST_BYTES = 65_536;

/** The commands of a keyring. The value is written to stdin, so that no process list shows it. */
interface KeyringCommands {
  readonly program: string;
  get(name: string): readonly string[];
  remove(name: string): readonly string[];
  set(name: string): readonly string[];
  /** Returns the text for stdin; by default the value itself. */
  input?(name: string, value: string): string;
}

const VAULT = "[void][Windows.Security.Credentials.PasswordVault," +
  "Windows.Security.Credentials,ContentType=WindowsRuntime];" +
  "$v=New-Object Windows.Security.Credentials.PasswordVault;";
const shell = (text: string) => ["-NoProfile", "-NonInteractive", "-Command", VAULT + text];

const KEYRINGS: Partial<Record<typeof Deno.build.os, KeyringCommands>> = {
  linux: {
    program: "secret-tool",
    get: (name) => ["lookup", "service", "pml", "name", name],
    remove: (name) => ["clear", "service", "pml", "name", name],
    set: (name) => ["store", `--label=PML ${name}`, "service", "pml", "name", name],
  },
  darwin: {
    program: "security",
    get: (name) => ["find-generic-password", "-s", "pml", "-a", name, "-w"],
    remove: (name) => ["delete-generic-password", "-s", "pml", "-a", name],
    set: () => ["-i"],
    input: (name, value) =>
      `add-generic-password -U -s pml -a ${name} -w "${value.replace(/["\\]/g, "\\$&")}"\n`,
  },
  windows: {
    program: "powershell.exe",
    get: (name) => shell(`$c=$v.Retrieve('pml','${name}');$c.RetrievePassword();$c.Password`),
    remove: (name) => shell(`$v.Remove($v.Retrieve('pml','${name}'))`),
    set: (name) =>
      shell(
        `$v.Add((New-Object Windows.Security.Credentials.PasswordCredential('pml','${name}',` +
          "[Console]::In.ReadToEnd())))",
      ),
  },
};

/** A program outside the workspace, and its environment. */
export interface OutsideProgram {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * Returns the keyring program of this system; undefined if the system has none or it is missing.
 */
export function keyringProgram(loaded: LoadedConfig): OutsideProgram | undefined {
  const file = findOutside(loaded, KEYRINGS[Deno.build.os]?.program ?? "");
  return file === undefined ? undefined : { file, env: outsideEnvironment(loaded) };
}

/** Returns the keyring of a program; undefined if there is none. */
export function keyringOf(
  program: OutsideProgram | undefined,
  closing: AbortSignal,
  { os = Deno.build.os } = {},
): Keyring | undefined {
  const commands = KEYRINGS[os];
  if (program === undefined || commands === undefined) return undefined;
  const run = (args: readonly string[], input?: string) =>
    runOutside(program, { args, input, closing });
  const get = async (name: string) => {
    const { code, stdout, stderr } = await run(commands.get(name));
    if (code === 0 && stdout !== "") return stdout.replace(/\r?\n$/, "");
    throw new Error(stderr || "the keyring does not contain it");
  };
  return {
    get,
    set: async (name, value) => {
      // `security` would run a second line as another command.
      if (commands.input && value.includes("\n")) return false;
      try {
        const { code } = await run(commands.set(name), commands.input?.(name, value) ?? value);
        // guard: sign-in-keyring-fallback
        return code === 0 && await get(name) === value;
      } catch {
        return false; // the keyring stays locked: the value goes to a file
      }
    },
    remove: async (name) => {
      const { code, stderr } = await run(commands.remove(name));
      const why = visible(stderr.trim(), 300);
      if (code === 0 || why === "") return;
      throw new PmlError("KEY_MISSING", `Cannot remove ${quoted(name)} from the keyring: ${why}`, {
        hint: "Unlock your keyring, and try again",
      });
    },
  };
}

/** Runs a program that accesses secrets, with the user's session and without keys. */
export async function runOutside(
  { file, env }: OutsideProgram,
  { args, input, closing }: {
    readonly args: readonly string[];
    readonly input?: string | undefined;
    readonly closing: AbortSignal;
  },
): Promise<ProgramResult> {
  return await runProgram({ file, args, cwd: dirname(file), env, hasKeeper: true }, {
    signal: closing,
    ms: LOOK_MS,
    input,
    maxBytes: MOST_BYTES,
  });
}

/** Returns the environment of the user's programs: the session, without keys. */
export function outsideEnvironment(
  { environment, workspace }: LoadedConfig,
): OutsideProgram["env"] {
  const PATH = searchPath(environment.get("PATH"), workspace.root).join(delimiter);
  return { ...browserEnvironment(environment), PATH };
}

/**
 * Returns the absolute path of one of the user's programs, by name or path; undefined if it does
 * not exist, or is in the workspace, where tools could change it.
 */
export function findOutside(
  { environment, workspace: { root: workspace } }: LoadedConfig,
  name: string,
): string | undefined {
  const isPath = isAbsolute(name);
  const path = searchPath(isPath ? dirname(name) : environment.get("PATH"), workspace);
  // guard: key-program
  return findProgram(isPath ? basename(name) : name, { path, workspace });
}
