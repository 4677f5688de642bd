/**
 * Finds the files of the programs that a confined server may run. PML write-protects these files,
 * so that the server cannot replace them.
 *
 * @module
 */

import { delimiter, join, resolve } from "node:path";
import { PmlError } from "../../core/errors.ts";
import { quoted } from "../../core/json.ts";
import { infoAt, isInside, realPathIfAny } from "../../io/path_info.ts";
import { searchPath } from "../../sandbox/search_path.ts";

/**
 * Returns the PATH without folders that the server can write, and the files of granted programs in
 * the workspace, which must be write-protected one by one. Throws `SANDBOX_DENIED` if the server
 * can write in the folder of a program outside the workspace.
 */
export function grantedPrograms(
  run: readonly string[],
  { name, workspace, cwd, path, write }: {
    readonly name: string;
    readonly workspace: string;
    readonly cwd: string;
    /** The PATH of the server. */
    readonly path: string | undefined;
    /** The folders and files that the server may write. */
    readonly write: readonly string[];
  },
): { readonly path: string; readonly files: readonly string[] } {
  const writableRoots = write.filter((root) => root !== workspace);
  const writableRoot = (file: string) =>
    isInside(workspace, file) ? undefined : writableRoots.find((root) => isInside(root, file));
  const folders = searchPath(path, workspace).filter((folder) =>
    writableRoot(folder) === undefined
  );
  const files: string[] = [];
  for (const program of run) {
    const places = /[\\/]/.test(program)
      ? [resolve(cwd, program)]
      : folders.map((folder) => join(folder, program)).filter((file) => infoAt(file)).slice(0, 1);
    for (const file of places.flatMap((file) => [file, realPathIfAny(file) ?? file])) {
      const root = writableRoot(file);
      if (root !== undefined) throw replaceableError({ name, program, root });
      if (isInside(workspace, file)) files.push(file);
    }
  }
  return { path: folders.join(delimiter), files: [...new Set(files)] };
}

function replaceableError(
  { name, program, root }: Record<"name" | "program" | "root", string>,
): PmlError {
  const what = `the write grant ${quoted(root, 300)} contains the program ${quoted(program, 300)}`;
  return new PmlError("SANDBOX_DENIED", `Cannot confine ${quoted(name)}: ${what}`, {
    hint: "Grant a program that the server cannot replace",
  });
}
