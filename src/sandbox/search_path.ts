/**
 * Finds programs outside the workspace, once, by their absolute path.
 *
 * @module
 */

import { delimiter, isAbsolute, join } from "node:path";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { isInside, realPathIfAny, targetAt } from "../io/place.ts";

/**
 * Returns the real folders of a PATH, without those that are relative, missing or in the workspace.
 */
export function searchPath(path: string | undefined, workspace: string): readonly string[] {
  const folders = (path ?? "").split(delimiter).filter(isAbsolute).map(realPathIfAny);
  // A folder whose name contains the separator cannot be in a list.
  const outside = folders.filter((folder) =>
    folder !== undefined && !isInside(workspace, folder) &&
    ![delimiter, ","].some((mark) => folder.includes(mark))
  );
  return [...new Set(outside as string[])]; // none is undefined
}

/** Finds the file of a program by its name. A file that really lies in the workspace is ignored. */
export function findProgram(
  name: string,
  { path, workspace }: { readonly path: readonly string[]; readonly workspace: string },
): string | undefined {
  if (/[\\/]/.test(name)) return undefined;
  // The path keeps the name that was found, because some programs act by their name.
  return path.map((folder) => join(folder, name)).find((file) =>
    isProgram(file) && !isInside(workspace, realPathIfAny(file) ?? workspace)
  );
}

/**
 * Finds the file of each program that a module may run. Throws `SANDBOX_DENIED` if one is missing.
 */
export function foundPrograms(
  names: readonly string[],
  where: { readonly path: readonly string[]; readonly workspace: string },
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => {
    const file = findProgram(name, where);
    if (file !== undefined) return [name, file];
    throw unfoundProgram("SANDBOX_DENIED", name);
  }));
}

/** Returns the error for a program that is not there. */
export function unfoundProgram(code: ErrorCode, name: string): PmlError {
  return new PmlError(code, `Cannot find the program ${quoted(name)} on PATH`, {
    hint: "Install it outside the workspace, in a folder that PATH names",
  });
}

function isProgram(file: string): boolean {
  const { isFile = false, mode = null } = targetAt(file) ?? {};
  // Systems without file modes use the name.
  return isFile && (mode === null || (mode & 0o111) !== 0);
}
