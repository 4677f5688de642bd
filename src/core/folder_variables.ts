/**
 * The variables for folders in definitions, such as `${workspaceFolder}`. VS Code and Cursor use
 * the same names.
 *
 * @module
 */

import { basename } from "node:path";

/** The values of the folder variables. */
export interface Folders {
  /** The folder that tools may touch, a real path. */
  readonly workspaceFolder: string;
  readonly workspaceFolderBasename: string;
  readonly userHome: string;
}

/** The reference to the workspace, as a definition contains it. */
export const WORKSPACE_FOLDER = "${workspaceFolder}";
/** The names of the variables that PML replaces itself, for a regular expression. */
export const OWN_VARIABLES = "(?:dataFolder|workspaceFolder|workspaceFolderBasename|userHome)";
/** The names of all other variables in a text: `${NAME}` or `${NAME:-default}`. */
const KEY = new RegExp(`\\$\\{(?!${OWN_VARIABLES}\\})(\\w+)`, "g");
const FOLDER = /\$\{(workspaceFolder|workspaceFolderBasename|userHome)\}/g;

/** Returns the values of the folder variables. */
export function foldersOf(
  { workspace, userHome }: { readonly workspace: string; readonly userHome: string },
): Folders {
  return {
    workspaceFolder: workspace,
    workspaceFolderBasename: basename(workspace),
    userHome,
  };
}

/** Returns a text with its folder variables replaced. */
export function withFolders(text: string, folders: Folders): string {
  return text.replace(FOLDER, (_, name: keyof Folders) => folders[name]);
}

/** Returns the names of a text's variables, except those for folders. May contain duplicates. */
export function variablesIn(text: string): readonly string[] {
  return [...text.matchAll(KEY)].map(([, name = ""]) => name);
}
