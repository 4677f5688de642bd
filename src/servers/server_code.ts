/**
 * Finds the files that contain the code of a server.
 *
 * @module
 */

import { resolve } from "node:path";
import { envFilePath } from "../config/env_file.ts";
import type { ServerDefinition } from "./kind.ts";
import { moduleOf, programOf } from "./kinds.ts";
import { type Folders, withFolders } from "../core/folder_variables.ts";

/** Matches names of files that contain code. */
const CODE = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar)$/i;

/**
 * Returns the code files that the definition of a server names, and the file of its variables.
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
  // An argument may be a path with spaces, or a command line for a shell, so each whole argument
  // and each of its words is tried.
  const words = [command, ...args].flatMap((arg) => [arg, ...arg.split(/[\s"'`;&|()=]+/)]);
  const files = words.filter((word) => CODE.test(word) || word === command && /[\\/]/.test(word));
  const variables = envFilePath(server, { folders }) ?? [];
  return [...files.map((file) => resolve(cwd, file)), variables].flat();
}
