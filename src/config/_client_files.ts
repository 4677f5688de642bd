/**
 * Finds environment variables that a client's configuration file sets. The user need not have
 * written that file: it can come with a folder that others wrote.
 *
 * @module
 */

import { join } from "node:path";
import listed from "../../config/client-files.json" with { type: "json" };
import { quoted } from "../core/json.ts";
import { isGone, namesInFolder } from "../io/path_info.ts";
import { readRegularText, whyUnread } from "../io/regular_file.ts";

/** The files in which clients keep the environment of the servers that they start. */
const CLIENT_FILES = listed.filter((file) => !file.includes("*"));

const MOST_BYTES = 1_000_000;

/** A client's file, and the folder that it belongs to. */
export interface SettingFile {
  readonly path: string;
  readonly folder: string;
}

/** A client's file that sets a variable, or may set it. */
export interface ClientSetting extends SettingFile {
  /** A text for the user: `"FILE" sets NAME`. */
  readonly statement: string;
}

/** Finds the first client's file in these folders that sets, or may set, each variable. */
export function findClientSettings(
  names: readonly string[],
  folders: Iterable<string>,
): ReadonlyMap<string, ClientSetting> {
  const setBy = new Map<string, ClientSetting>();
  if (names.length === 0) return setBy;
  for (const file of [...new Set(folders)].flatMap(clientFiles)) {
    for (const name of names) {
      const how = setBy.has(name) ? undefined : howFileSets(file.path, name);
      if (how) setBy.set(name, { ...file, statement: `${quoted(file.path, 200)} ${how}` });
    }
  }
  return setBy;
}

/**
 * Returns the client's files of a folder. The folder is listed once, which is faster than a system
 * call for each name.
 */
function clientFiles(folder: string): readonly SettingFile[] {
  const names = namesIn(folder);
  const files = CLIENT_FILES.filter((file) => names.has(file.split("/", 1)[0] ?? ""));
  const workspaces = [...names].filter((name) => name.endsWith(".code-workspace"));
  return [...files, ...workspaces].map((name) => ({ path: join(folder, name), folder }));
}

function namesIn(folder: string): ReadonlySet<string> {
  try {
    return new Set(namesInFolder(folder));
  } catch (error) {
    if (isGone(error)) return new Set();
    // A folder that cannot be listed may still contain files that can be opened.
    return new Set(CLIENT_FILES.map((file) => file.split("/", 1)[0] ?? ""));
  }
}

/** Returns how a file sets a variable; undefined if it does not. */
function howFileSets(file: string, name: string): string | undefined {
  try {
    if (!Deno.statSync(file).isFile) return undefined;
    const text = decodeEscapes(readRegularText(file, { most: MOST_BYTES, links: true }));
    // A name without `PML_` may also be part of a longer name, or of a value that uses the variable.
    const isNamed = name.startsWith("PML_")
      ? text.includes(name)
      : new RegExp(`(?<![\\w$:{])${name}["']?\\s*[:=]`).test(text);
    if (isNamed) return `sets ${name}`;
    // The client's file may name a file of variables. That file can have any name, so the key
    // `envFile` is enough. For the home variables this is not checked.
    return !/^(?:HOME|USERPROFILE)$/.test(name) && /\benv_?file\b/i.test(text)
      ? `names a file that may set ${name}`
      : undefined;
  } catch (error) {
    return isGone(error) ? undefined : `may set ${name} (${whyUnread(error)}; mend or remove it)`;
  }
}

/** Decodes the escapes with which JSON, TOML and YAML can spell a letter of a name. */
function decodeEscapes(text: string): string {
  const escapes = /\\[ux]0*([\da-f]{2})/gi;
  return text.replace(escapes, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}
