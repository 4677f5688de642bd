/**
 * Keys that PML does not keep itself: in the keyring of the system, or with a program of the person
 * such as a password manager. A private file in the PML home says which key is where.
 *
 * @module
 */

import { delimiter, dirname, join } from "node:path";
import { browserEnvironment } from "../config/child_environment.ts";
import { type Key, SOURCES_FILE } from "../config/keys.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import { readPrivate } from "../io/private_files.ts";
import { type ProgramResult, runProgram } from "../sandbox/process.ts";
import { findProgram, searchPath } from "../sandbox/search_path.ts";
import type { App } from "./app.ts";

/** Where a key is: in the keyring, or with a program that prints it. */
export type KeySource = { readonly keyring: true } | { readonly command: readonly string[] };

/** Where each key is, by its name. */
export type KeySources = Readonly<Record<string, KeySource>>;

/** How long the keyring or a program may take: the person may have to unlock it. */
const LOOK_MS = 30_000;
const MOST_BYTES = 65_536;

/** The commands of a keyring. The value comes on stdin, so that no list of processes shows it. */
interface Keyring {
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

const KEYRINGS: Partial<Record<typeof Deno.build.os, Keyring>> = {
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

/** Reads where keys are. A file that cannot be read names none, which a warning says. */
export function keySources(home: string, warn: (message: string) => void): KeySources {
  return readPrivate(join(home, SOURCES_FILE), { parse: parsed, warn }) ?? {};
}

/** Looks up every key that is kept outside of PML. What fails is warned of, and is not set. */
export async function lookUpKeys(
  app: App,
): Promise<ReadonlyMap<string, Pick<Key, "value" | "from">>> {
  const { log } = app;
  const warn = (message: string) => log.warn(message);
  const found = await Promise.all(
    Object.entries(keySources(app.keys.home, warn)).map(async ([name, source]) => {
      try {
        const value = await keyFrom(app, name, source);
        const from: Key["from"] = "keyring" in source ? "the keyring" : "a command";
        return [[name, { value, from }]] as const;
      } catch (error) {
        log.warn(error instanceof Error ? error.message : `${error}`);
        return [];
      }
    }),
  );
  return new Map(found.flat());
}

/** Returns the value of a key. Throws KEY_MISSING with the reason. */
export async function keyFrom(app: App, name: string, source: KeySource): Promise<string> {
  if ("keyring" in source) {
    const { code, stdout, stderr } = await runKeyring(app, (keyring) => keyring.get(name));
    if (code === 0 && stdout !== "") return stdout.replace(/\r?\n$/, "");
    throw unfound(name, "the keyring", stderr || "it does not have it");
  }
  const [file = "", ...args] = source.command;
  const { code, stdout, stderr } = await run(app, { file, args });
  const value = stdout.replace(/\r?\n$/, "");
  if (code === 0 && value !== "") return value;
  const why = stderr.trim() || (code === 0 ? "it prints nothing" : `it ends with ${code}`);
  throw unfound(name, quoted(file, 200), why);
}

/** Puts a key into the keyring. Returns whether there is one that took it. */
export async function keepInKeyring(app: App, name: string, value: string): Promise<boolean> {
  try {
    const { code } = await runKeyring(
      app,
      (keyring) => keyring.set(name),
      (keyring) => keyring.input?.(name, value) ?? value,
    );
    return code === 0 && await keyFrom(app, name, { keyring: true }) === value;
  } catch {
    return false; // there is none, or nobody unlocks it: the key goes into the file
  }
}

/** Takes a key out of the keyring. */
export async function removeFromKeyring(app: App, name: string): Promise<void> {
  await runKeyring(app, (keyring) => keyring.remove(name));
}

/** Returns the absolute path of a program of the person. Throws if it is not there. */
export function programOf(app: App, name: string): string {
  const { environment, workspace: { root: workspace } } = app.loaded();
  const path = searchPath(environment.get("PATH"), workspace);
  const file = findProgram(name, { path, workspace });
  if (file !== undefined) return file;
  throw new PmlError("USAGE", `Cannot find the program ${quoted(name)} on PATH`, {
    hint: "Install it outside the workspace, in a folder that PATH names",
  });
}

async function runKeyring(
  app: App,
  argsOf: (keyring: Keyring) => readonly string[],
  inputOf: (keyring: Keyring) => string = () => "",
): Promise<ProgramResult> {
  const keyring = KEYRINGS[Deno.build.os];
  if (keyring === undefined) throw new PmlError("USAGE", "PML knows no keyring of this system");
  const file = programOf(app, keyring.program);
  return await run(app, { file, args: argsOf(keyring), input: inputOf(keyring) });
}

async function run(
  app: App,
  { file, args, input }: {
    readonly file: string;
    readonly args: readonly string[];
    readonly input?: string;
  },
): Promise<ProgramResult> {
  const { environment, workspace: { root } } = app.loaded();
  const PATH = searchPath(environment.get("PATH"), root).join(delimiter);
  const env = { ...browserEnvironment(environment), PATH };
  const signal = AbortSignal.any([app.closing, AbortSignal.timeout(LOOK_MS)]);
  return await runProgram({ file, args, cwd: dirname(file), env, kept: true }, {
    ...{ signal, input, maxBytes: MOST_BYTES },
  });
}

function unfound(name: string, where: string, why: string): PmlError {
  const said = visible(why.trim(), 300);
  return new PmlError("KEY_MISSING", `Cannot get ${quoted(name)} from ${where}: ${said}`, {
    hint: "`pml key list` shows where each key is",
  });
}

function parsed(json: unknown): KeySources {
  const isSource = (source: unknown) =>
    isObject(source) && (source.keyring === true ||
      Array.isArray(source.command) && source.command.every((word) => typeof word === "string"));
  if (isObject(json) && Object.values(json).every(isSource)) return json as KeySources; // checked
  throw new TypeError("it does not say where keys are");
}
