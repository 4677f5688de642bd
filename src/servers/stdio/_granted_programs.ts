/**
 * Finds the programs that a confined server may run, so that the server cannot replace them.
 *
 * @module
 */

import { delimiter, join, resolve } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { infoAt, isInside, realPathIfAny } from "../../io/place.ts";
import { searchPath } from "../../sandbox/search_path.ts";

/**
 * Returns the PATH without folders that the server can write, and the files of granted programs in
 * the workspace. Throws `SANDBOX_DENIED` if a program is in another folder that it can write.
 */
export function grantedPrograms(
  run: readonly string[],
  { name, workspace, cwd, path, write }: {
    readonly name: string;
    readonly workspace: string;
    readonly cwd: string;
    /** The PATH of the server. */
    readonly path: string | undefined;
    /** The folders and files that it may write. */
    readonly write: readonly string[];
  },
): { readonly path: string; readonly files: readonly string[] } {
  const outside = write.filter((root) => root !== workspace);
  const writable = (file: string) =>
    isInside(workspace, file) ? undefined : outside.find((root) => isInside(root, file));
  const folders = searchPath(path, workspace).filter((folder) => writable(folder) === undefined);
  const files: string[] = [];
  for (const program of run) {
    const places = /[\\/]/.test(program)
      ? [resolve(cwd, program)]
      : folders.map((folder) => join(folder, program)).filter((file) => infoAt(file)).slice(0, 1);
    for (const file of places.flatMap((file) => [file, realPathIfAny(file) ?? file])) {
      const root = writable(file);
      if (root !== undefined) throw replaceable({ name, program, root });
      if (isInside(workspace, file)) files.push(file);
    }
  }
  return { path: folders.join(delimiter), files: [...new Set(files)] };
}

function replaceable(
  { name, program, root }: Record<"name" | "program" | "root", string>,
): PmlError {
  const what = `the write grant ${quoted(root, 300)} contains the program ${quoted(program, 300)}`;
  return new PmlError("SANDBOX_DENIED", `Cannot confine ${quoted(name)}: ${what}`, {
    hint: "Grant a program that the server cannot replace",
  });
}
