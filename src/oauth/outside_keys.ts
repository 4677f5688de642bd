/**
 * Keys that are stored outside PML: in the keyring of the system, or with a program of the user
 * such as a password manager. A private file in the PML home lists the source of each key.
 *
 * @module
 */

import { join } from "node:path";
import { SOURCES_FILE } from "../config/keys.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted, visible } from "../core/json.ts";
import { readPrivate, type WarningLog } from "../io/private_files.ts";
import { FileTokenStore, type Keyring } from "./token_store.ts";
import { programNotFound } from "../sandbox/search_path.ts";
import type { LoadedConfig } from "../config/config.ts";
import {
  findOutside,
  keyringOf,
  keyringProgram,
  outsideEnvironment,
  runOutside,
} from "./keyring.ts";

/** The source of a key: the keyring, or a program that prints the key. */
export type KeySource = { readonly keyring: true } | { readonly command: readonly string[] };

/** The source of each key, by the name of the key. */
export type KeySources = Readonly<Record<string, KeySource>>;

/** The configuration of a running PML, and the signal that aborts when it ends. */
export interface KeyContext {
  loaded(): LoadedConfig;
  readonly closing: AbortSignal;
}

/** Reads the sources of keys. If the file cannot be read, logs a warning and returns none. */
export function keySources(home: string, log: WarningLog): KeySources {
  return readPrivate(join(home, SOURCES_FILE), parseSources, log) ?? {};
}

/** Returns the value of a key. Throws `PmlError` `KEY_MISSING` with the reason. */
export async function keyFrom(app: KeyContext, name: string, source: KeySource): Promise<string> {
  if ("keyring" in source) {
    try {
      const keyring = systemKeyring(app);
      if (keyring !== undefined) return await keyring.get(name);
      throw new Error("its program is not on PATH (on Linux `secret-tool`)");
    } catch (error) {
      throw keyMissingError(name, "the keyring", Object(error).message);
    }
  }
  const [commandName = "", ...args] = source.command;
  const file = findOutside(app.loaded(), commandName);
  let why = "it is not a program outside the workspace";
  if (file !== undefined) {
    const program = { file, env: outsideEnvironment(app.loaded()) };
    const { code, stdout, stderr } = await runOutside(program, { args, closing: app.closing });
    const value = stdout.replace(/\r?\n$/, "");
    if (code === 0 && value !== "") return value;
    why = stderr.trim() || (code === 0 ? "it printed nothing" : `it ended with code ${code}`);
  }
  throw keyMissingError(name, quoted(commandName, 200), why);
}

/** Returns the keyring of the system; undefined if there is none. */
export function systemKeyring(app: KeyContext): Keyring | undefined {
  return keyringOf(keyringProgram(app.loaded()), app.closing);
}

/** Removes a secret from the keyring. */
export async function removeFromKeyring(app: KeyContext, name: string): Promise<void> {
  await systemKeyring(app)?.remove(name);
}

/**
 * Returns the names of all secrets in the keyring for this PML home: keys, and secrets of sign-ins.
 */
export function namesInKeyring(home: string, log: WarningLog): readonly string[] {
  const keys = Object.entries(keySources(home, log)).filter(([, source]) => "keyring" in source);
  return [
    ...keys.map(([name]) => name),
    ...new FileTokenStore(join(home, "sign_ins"), log).namesInKeyring(),
  ];
}

/** Returns the absolute path of one of the user's programs. Throws if it is not found. */
export function findProgram(app: KeyContext, name: string): string {
  const file = findOutside(app.loaded(), name);
  if (file !== undefined) return file;
  throw programNotFound("USAGE", name);
}

function keyMissingError(name: string, where: string, why: string): PmlError {
  const reason = visible(why.trim(), 300);
  return new PmlError("KEY_MISSING", `Cannot get ${quoted(name)} from ${where}: ${reason}`, {
    hint: "`pml key list` shows where each key is",
  });
}

function parseSources(json: unknown): KeySources {
  const isSource = (source: unknown) =>
    isObject(source) && (source.keyring === true ||
      Array.isArray(source.command) && source.command.every((word) => typeof word === "string"));
  if (isObject(json) && Object.values(json).every(isSource)) return json as KeySources; // checked
  throw new TypeError("it does not list the sources of keys");
}
