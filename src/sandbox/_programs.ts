/**
 * Finds programs outside the workspace, once, by their absolute path.
 *
 * @module
 */

import { isAbsolute, join, relative } from "node:path";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** Gives the folders of a PATH as they really are: none that is relative, gone or in the workspace. */
export function searchPath(path: string, workspace: string): readonly string[] {
  const folders = path.split(":").filter(isAbsolute).map((folder) => real(folder));
  const outside = folders.filter((folder) =>
    folder !== undefined && !/[,:]/.test(folder) && !isInside(workspace, folder)
  );
  return [...new Set(outside as string[])]; // none is undefined
}

/** Finds the file of each program. */
export function foundPrograms(
  names: readonly string[],
  { path, workspace }: { readonly path: readonly string[]; readonly workspace: string },
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => {
    const files = path.map((folder) => join(folder, name));
    const file = name.includes("/") ? undefined : files.find((one) => real(one) && isProgram(one));
    // Run by the name that it was found under: some programs are many by their name.
    if (file && !isInside(workspace, real(file) ?? workspace)) return [name, file];
    throw new PmlError("SANDBOX_DENIED", `Cannot find the program ${quoted(name)} on PATH`, {
      hint: "Install it outside the workspace, in a folder that PATH names",
    });
  }));
}

/** Tells whether a path lies in a folder; a name may begin with two dots. */
export function isInside(folder: string, path: string): boolean {
  return relative(folder, path).split("/")[0] !== "..";
}

function isProgram(file: string): boolean {
  const { isFile, mode } = Deno.statSync(file);
  return isFile && ((mode ?? 0) & 0o111) !== 0;
}

function real(path: string): string | undefined {
  try {
    return Deno.realPathSync(path);
  } catch {
    return undefined; // there is nothing
  }
}
