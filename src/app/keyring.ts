/**
 * Keeps secrets in the keyring of the system, through the program that the system has for it.
 *
 * @module
 */

import { delimiter, dirname } from "node:path";
import { browserEnvironment } from "../config/child_environment.ts";
import type { LoadedConfig } from "../config/config.ts";
import { PmlError } from "../core/errors.ts";
import { quoted, visible } from "../core/json.ts";
import type { Keyring } from "../oauth/token_store.ts";
import { type ProgramResult, runProgram } from "../sandbox/process.ts";
import { findProgram, searchPath } from "../sandbox/search_path.ts";

/** How long the keyring or a program may take: the person may have to unlock it. */
const LOOK_MS = 30_000;
const MOST_BYTES = 65_536;

/** The commands of a keyring. The value comes on stdin, so that no list of processes shows it. */
interface KeyringCommands {
  readonly program: string;
  readonly get: (name: string) => readonly string[];
  readonly remove: (name: string) => readonly string[];
  readonly set: (name: string) => readonly string[];
  /** Returns what goes to stdin; the value itself unless told. */
  readonly input?: (name: string, value: string) => string;
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

/** A program outside the workspace, and the environment that it gets. */
export interface OutsideProgram {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
}

/** The keyring of this system. */
export class SystemKeyring implements Keyring {
  /** The program of the keyring. */
  readonly program: OutsideProgram;
  readonly #commands: KeyringCommands;
  readonly #closing: AbortSignal;

  private constructor(program: OutsideProgram, commands: KeyringCommands, closing: AbortSignal) {
    this.program = program;
    this.#commands = commands;
    this.#closing = closing;
  }

  /** Returns the keyring of this system; undefined if PML knows none, or its program is missing. */
  static find(loaded: LoadedConfig, closing: AbortSignal): SystemKeyring | undefined {
    const file = findOutside(loaded, KEYRINGS[Deno.build.os]?.program ?? "");
    return file === undefined
      ? undefined
      : this.of({ file, env: outsideEnvironment(loaded) }, closing);
  }

  /** Returns the keyring that a program is for; undefined if there is none. */
  static of(program: OutsideProgram | undefined, closing: AbortSignal): SystemKeyring | undefined {
    const commands = KEYRINGS[Deno.build.os];
    return program && commands && new SystemKeyring(program, commands, closing);
  }

  async get(name: string): Promise<string> {
    const { code, stdout, stderr } = await this.#run(this.#commands.get(name));
    if (code === 0 && stdout !== "") return stdout.replace(/\r?\n$/, "");
    throw new Error(stderr || "it does not have it");
  }

  async set(name: string, value: string): Promise<boolean> {
    const { set, input } = this.#commands;
    try {
      const { code } = await this.#run(set(name), input?.(name, value) ?? value);
      return code === 0 && await this.get(name) === value;
    } catch {
      return false; // nobody unlocks it: the value goes into a file
    }
  }

  async remove(name: string): Promise<void> {
    const { code, stderr } = await this.#run(this.#commands.remove(name));
    const why = visible(stderr.trim(), 300);
    if (code === 0 || why === "") return;
    throw new PmlError("KEY_MISSING", `Cannot remove ${quoted(name)} from the keyring: ${why}`, {
      hint: "Unlock your keyring, and try again",
    });
  }

  async #run(args: readonly string[], input?: string): Promise<ProgramResult> {
    return await runOutside(this.program, { args, input, closing: this.#closing });
  }
}

/** Runs a program that has secrets, with the person's session and no key. */
export async function runOutside(
  { file, env }: OutsideProgram,
  { args, input, closing }: {
    readonly args: readonly string[];
    readonly input?: string | undefined;
    readonly closing: AbortSignal;
  },
): Promise<ProgramResult> {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(LOOK_MS)]);
  return await runProgram({ file, args, cwd: dirname(file), env, kept: true }, {
    ...{ signal, input, maxBytes: MOST_BYTES },
  });
}

/** Returns the environment of programs that have secrets. */
export function outsideEnvironment(
  { environment, workspace }: LoadedConfig,
): OutsideProgram["env"] {
  const PATH = searchPath(environment.get("PATH"), workspace.root).join(delimiter);
  return { ...browserEnvironment(environment), PATH };
}

/** Returns the absolute path of a program of the person; undefined if it is not there. */
export function findOutside(
  { environment, workspace: { root: workspace } }: LoadedConfig,
  name: string,
): string | undefined {
  const path = searchPath(environment.get("PATH"), workspace);
  return findProgram(name, { path, workspace });
}
