/**
 * Finds the absolute paths of programs outside the workspace.
 *
 * @module
 */

import { delimiter, isAbsolute, join } from "node:path";
import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { followedInfo, isInside, realPathIfAny } from "../io/place.ts";

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
  return [...new Set(outside as string[])]; // the filter removed undefined
}

/** The folders in which a program is searched. */
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
  return path.flatMap((folder) => names.map((each) => join(folder, each))).find((file) =>
    isProgram(file, os) && !isInside(workspace, realPathIfAny(file) ?? workspace)
  );
}

/**
 * Returns the extensions of programs in the order of the search; none on systems where the mode of
 * a file makes it a program. Windows lists them in the variable `PATHEXT`; these are the ones that
 * the system itself starts, in the usual order.
 */
export function programEndings(os: typeof Deno.build.os = Deno.build.os): readonly string[] {
  return os === "windows" ? [".com", ".exe", ".bat", ".cmd"] : [];
}

/** Returns the file names that a program may have. */
function programNames(name: string, endings: readonly string[]): readonly string[] {
  // A file without such an extension, such as the `npx` next to `npx.cmd`, is for another system.
  const isWhole = endings.length === 0 || endings.some((end) => name.toLowerCase().endsWith(end));
  return isWhole ? [name] : endings.map((end) => name + end);
}

/**
 * Returns the file of a program for its path. On Windows, the path may lack the extension.
 */
export function withEnding(file: string, os: typeof Deno.build.os = Deno.build.os): string {
  const files = programNames(file, programEndings(os));
  return files.find((each) => isProgram(each, os)) ?? file;
}

/**
 * Finds the file of each program that a module may run. Throws `SANDBOX_DENIED` if one is missing.
 */
export function foundPrograms(
  names: readonly string[],
  where: ProgramPlace,
): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => {
    const file = findProgram(name, where);
    if (file !== undefined) return [name, file];
    throw unfoundProgram("SANDBOX_DENIED", name);
  }));
}

/** Returns the error for a program that was not found. */
export function unfoundProgram(code: ErrorCode, name: string): PmlError {
  return new PmlError(code, `Cannot find the program ${quoted(name)} on PATH`, {
    hint: "Install it outside the workspace, in a folder that PATH names",
  });
}

function isProgram(file: string, os: typeof Deno.build.os): boolean {
  const { isFile = false, mode = null } = followedInfo(file) ?? {};
  // Windows uses the extension. Deno returns a mode there, but never with the bit of a program.
  return isFile && (os === "windows" || mode === null || (mode & 0o111) !== 0);
}
