/**
 * Finds the absolute paths of programs outside the workspace.
 *
 * @module
 */

import { delimiter, isAbsolute, join } from "node:path";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { infoAfterLinks, isInside, realPathIfAny } from "../io/path_info.ts";

/**
 * Returns the real folders of a PATH, except relative and missing folders, and folders in the
 * workspace.
 */
export function searchPath(path: string | undefined, workspace: string): readonly string[] {
  const folders = (path ?? "").split(delimiter).filter(isAbsolute).map(realPathIfAny);
  // A folder whose name contains the separator of PATH, or of Deno's flags, cannot be passed on.
  const outside = folders.filter((folder) =>
    folder !== undefined && !isInside(workspace, folder) &&
    ![delimiter, ","].some((mark) => folder.includes(mark))
  );
  return [...new Set(outside as string[])]; // the filter removed undefined
}

/** Where PML looks for a program. */
export interface ProgramPlace {
  /** Absolute folders, in their order. */
  readonly path: readonly string[];
  readonly workspace: string;
  readonly os?: typeof Deno.build.os;
}

/** Finds the file of a program by its name. Ignores files whose real path is in the workspace. */
export function findProgram(
  name: string,
  { path, workspace, os = Deno.build.os }: ProgramPlace,
): string | undefined {
  if (/[\\/]/.test(name)) return undefined;
  const names = programNames(name, programEndings(os));
  // Links are not resolved, because some programs depend on the name that they are started by.
  return path.flatMap((folder) => names.map((fileName) => join(folder, fileName))).find((file) =>
    isProgram(file, os) && !isInside(workspace, realPathIfAny(file) ?? workspace)
  );
}

/**
 * Returns the extensions of programs in the order of the search; none on systems where the mode of
 * a file makes it a program. Windows lists further extensions in the variable `PATHEXT`; the system
 * itself starts only these, in this order.
 */
export function programEndings(os: typeof Deno.build.os = Deno.build.os): readonly string[] {
  return os === "windows" ? [".com", ".exe", ".bat", ".cmd"] : [];
}

/** Returns the file names that a program may have. */
function programNames(name: string, endings: readonly string[]): readonly string[] {
  // On Windows, a file without an extension (such as `npx` next to `npx.cmd`) is for other systems.
  const hasEnding = endings.length === 0 || endings.some((end) => name.toLowerCase().endsWith(end));
  return hasEnding ? [name] : endings.map((end) => name + end);
}

/**
 * Returns the file of a program for its path. On Windows, the path may lack the extension.
 */
export function withEnding(file: string, os: typeof Deno.build.os = Deno.build.os): string {
  const files = programNames(file, programEndings(os));
  return files.find((candidate) => isProgram(candidate, os)) ?? file;
}

/**
 * Finds the file of each program that a module may run. Throws `SANDBOX_DENIED` if one is missing.
 */
export function findPrograms(
  names: readonly string[],
  where: ProgramPlace,
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => {
    const file = findProgram(name, where);
    if (file !== undefined) return [name, file];
    throw programNotFound("SANDBOX_DENIED", name);
  }));
}

/** Returns the error for a program that was not found. */
export function programNotFound(code: ErrorCode, name: string): PmlError {
  return new PmlError(code, `Cannot find the program ${quoted(name)} on PATH`, {
    hint: "Install it outside the workspace, in a folder that PATH names",
  });
}

function isProgram(file: string, os: typeof Deno.build.os): boolean {
  const { isFile = false, mode = null } = infoAfterLinks(file) ?? {};
  // On Windows, the extension decides. Deno returns a mode there, but never with an executable bit.
  return isFile && (os === "windows" || mode === null || (mode & 0o111) !== 0);
}
