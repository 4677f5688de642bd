/**
 * Finds programs outside the workspace, once, by their absolute path.
 *
 * @module
 */

import { delimiter, isAbsolute, join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { isInside, realPathIfAny } from "../io/place.ts";

/** Gives the folders of a PATH as they really are: none that is relative, gone or in the workspace. */
export function searchPath(path: string | undefined, workspace: string): readonly string[] {
  const folders = (path ?? "").split(delimiter).filter(isAbsolute).map(realPathIfAny);
  // A list of folders cannot hold one whose name has what divides it.
  const outside = folders.filter((folder) =>
    folder !== undefined && !isInside(workspace, folder) &&
    ![delimiter, ","].some((mark) => folder.includes(mark))
  );
  return [...new Set(outside as string[])]; // none is undefined
}

/** Finds the file of a program by its name; what really lies in the workspace counts for nothing. */
export function findProgram(
  name: string,
  { path, workspace }: { readonly path: readonly string[]; readonly workspace: string },
): string | undefined {
  if (/[\\/]/.test(name)) return undefined;
  // Given by the name that it was found under: some programs are many by their name.
  return path.map((folder) => join(folder, name)).find((file) =>
    isProgram(file) && !isInside(workspace, realPathIfAny(file) ?? workspace)
  );
}

/** Finds the file of each program that a module may run. */
export function foundPrograms(
  names: readonly string[],
  where: { readonly path: readonly string[]; readonly workspace: string },
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => {
    const file = findProgram(name, where);
    if (file !== undefined) return [name, file];
    throw new PmlError("SANDBOX_DENIED", `Cannot find the program ${quoted(name)} on PATH`, {
      hint: "Install it outside the workspace, in a folder that PATH names",
    });
  }));
}

function isProgram(file: string): boolean {
  try {
    const { isFile, mode } = Deno.statSync(file);
    // A system without modes tells by the name.
    return isFile && (mode === null || (mode & 0o111) !== 0);
  } catch {
    return false; // not in this folder
  }
}
