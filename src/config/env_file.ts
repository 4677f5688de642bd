/**
 * Reads the file of variables that a definition names with `envFile`.
 *
 * @module
 */

import { resolve } from "node:path";
import { PmlError } from "../core/errors.ts";
import { type Folders, withFolders } from "../core/folder_variables.ts";
import { quoted } from "../core/json.ts";
import { isOwnVariable, isSteering } from "../core/steering.ts";
import { stampAt } from "../io/path_info.ts";
import { readRegularText, whyUnread } from "../io/regular_file.ts";
import { type Dotenv, parseDotenv } from "./dotenv.ts";
import type { ServerDefinition } from "../servers/kind.ts";
import { programOf } from "../servers/kinds.ts";

/** The variables of a file, by name. */
export type FileVariables = ReadonlyMap<string, string>;

/** The maximum size of a file of variables, in bytes. */
const MOST_BYTES = 65_536;

/**
 * Reads the variables of a server's file, and the numbers of the lines that are invalid. Throws
 * CONFIG_INVALID if the file is missing, longer than 64 KB, or sets a variable that changes how
 * programs run.
 */
export function readEnvFile(path: string, server: string): Dotenv {
  const cannot = (why: string, hint: string) =>
    new PmlError("CONFIG_INVALID", `Cannot start ${quoted(server)}: its envFile ${why}`, { hint });
  const file = quoted(path, 400);
  let text: string;
  try {
    text = readRegularText(path, { most: MOST_BYTES });
  } catch (error) {
    throw cannot(
      `${file} cannot be read: ${whyUnread(error)}`,
      "Create the file, or remove `envFile` from the definition",
    );
  }
  const read = parseDotenv(text);
  const steering = [...read.values.keys()].find((name) => isSteering(name) || isOwnVariable(name));
  if (steering === undefined) return read;
  throw cannot(
    `${file} sets ${steering}, which changes how programs run`,
    `Remove ${steering} from the file, or set it in \`env\` of the definition`,
  );
}

/** The names of the variables of each file, with the stamp of the file when it was read. */
const cachedNames = new Map<
  string,
  { readonly stamp: string; readonly names: readonly string[] }
>();

/**
 * Returns the sorted names of the variables in the `envFile` of a definition; an empty list if the
 * server cannot start with the file, and undefined if the definition names no file.
 */
export function envFileNames(
  definition: ServerDefinition,
  policy: { readonly folders: Folders },
): readonly string[] | undefined {
  const path = envFilePath(definition, policy);
  if (path === undefined) return undefined;
  const stamp = stampAt(path);
  const cacheEntry = cachedNames.get(path);
  if (cacheEntry !== undefined && cacheEntry.stamp === stamp) return cacheEntry.names;
  try {
    const names = [...readEnvFile(path, definition.name).values.keys()].sort();
    if (stamp !== undefined) cachedNames.set(path, { stamp, names });
    return names;
  } catch {
    return []; // the start of the server reports it
  }
}

/** Returns the path of the `envFile` of a definition. Only folder variables are replaced in it. */
export function envFilePath(
  definition: ServerDefinition,
  policy: { readonly folders: Folders },
): string | undefined {
  const envFile = programOf(definition)?.envFile;
  if (envFile === undefined) return undefined;
  const { folders } = policy;
  return resolve(folders.workspaceFolder, withFolders(envFile, folders));
}
