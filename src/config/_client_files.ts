/**
 * Finds variables that a client's configuration sets: whoever wrote the folder that holds it would
 * speak there for the person.
 *
 * @module
 */

import { join } from "node:path";
import protectedPaths from "../../config/protected-paths.json" with { type: "json" };
import { readRegularText } from "../io/regular_file.ts";

/** Files in which clients keep the environment of the servers that they start. */
const CLIENT_FILES = protectedPaths.clientFiles.filter((file) => !file.includes("*"));

const MOST_BYTES = 1_000_000;

/** A client's file, and the folder that it speaks for. */
export interface ClientFile {
  readonly path: string;
  readonly folder: string;
}

/** Gives the client's file in some folders that sets a variable, by the name of that. */
export function setByClients(
  names: readonly string[],
  folders: Iterable<string>,
): ReadonlyMap<string, ClientFile> {
  const setBy = new Map<string, ClientFile>();
  if (names.length === 0) return setBy;
  for (const file of [...new Set(folders)].flatMap(clientFiles)) {
    for (const name of names) if (!setBy.has(name) && sets(file.path, name)) setBy.set(name, file);
  }
  return setBy;
}

/** Gives the files of a folder that may be a client's: one look at the folder, and not one a name. */
function clientFiles(folder: string): readonly ClientFile[] {
  const names = namesIn(folder);
  const known = CLIENT_FILES.filter((file) => names.has(file.split("/", 1)[0] ?? ""));
  const workspaces = [...names].filter((name) => name.endsWith(".code-workspace"));
  return [...known, ...workspaces].map((name) => ({ path: join(folder, name), folder }));
}

function namesIn(folder: string): ReadonlySet<string> {
  try {
    return new Set([...Deno.readDirSync(folder)].map((entry) => entry.name));
  } catch {
    // A folder that cannot be listed may still be walked through.
    return new Set(CLIENT_FILES.map((file) => file.split("/", 1)[0] ?? ""));
  }
}

function sets(file: string, name: string): boolean {
  try {
    if (!Deno.statSync(file).isFile) return false;
    const text = unescaped(readRegularText(file, { most: MOST_BYTES, links: true }));
    // Other names stand in longer ones, and in values that only use them.
    const isNamed = name.startsWith("PML_")
      ? text.includes(name)
      : new RegExp(`(?<![\\w$:{])${name}["']?\\s*[:=]`).test(text);
    // A file of variables beside this one can have any name, so the key that names it is enough;
    // where a home lies is looked at as well.
    return isNamed || !/^(?:HOME|USERPROFILE)$/.test(name) && /\benv_?file\b/i.test(text);
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory);
  }
}

/** JSON, TOML and YAML can spell a letter of a name with an escape. */
function unescaped(text: string): string {
  const escapes = /\\[ux]0*([\da-f]{2})/gi;
  return text.replace(escapes, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
}
