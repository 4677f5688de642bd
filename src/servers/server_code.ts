/**
 * The files that servers run from.
 *
 * @module
 */

import { resolve } from "node:path";
import { envFilePath } from "../config/env_file.ts";
import type { ServerDefinition } from "./kind.ts";
import { moduleOf, programOf } from "./kinds.ts";
import { type Folders, withFolders } from "../core/folder_variables.ts";

/** The names of files that run. */
const CODE = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar)$/i;

/**
 * Returns the files that a server runs from, as far as its definition names them, and the file of
 * its variables.
 */
export function codeOf(server: ServerDefinition, folders: Folders): readonly string[] {
  const module = moduleOf(server);
  if (module !== undefined) return [module.path];
  const program = programOf(server);
  if (program === undefined) return [];
  const { workspaceFolder } = folders;
  const fill = (text: string) => withFolders(text, folders);
  const command = fill(program.command);
  const args = program.args.map(fill);
  const cwd = resolve(workspaceFolder, fill(program.cwd ?? ""));
  // A path may have blanks, and an argument may be a line of a shell.
  const words = [command, ...args].flatMap((one) => [one, ...one.split(/[\s"'`;&|()=]+/)]);
  const files = words.filter((one) => CODE.test(one) || one === command && /[\\/]/.test(one));
  const variables = envFilePath(server, { folders }) ?? [];
  return [...files.map((one) => resolve(cwd, one)), variables].flat();
}
