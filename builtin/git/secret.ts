/**
 * Keeps git from files that the sandbox protects. Git runs with the rights of the user, so it could
 * show and change these files.
 *
 * @module
 */

import { quoted } from "./failure.ts";
import { type Change, unquote } from "./parsing.ts";

/** The only part of a repository that this file uses. */
interface HasRoot {
  readonly root: string;
}

type Access = "read" | "write";

/** Throws `PATH_PROTECTED` if the sandbox protects a file of a repository from reading. */
export function requireReadable(repository: HasRoot, path: string): void {
  if (isProtected(repository, path, "read")) throw protectedError(repository, path, "read");
}

/**
 * Throws `PATH_PROTECTED` if git would write a protected file, or files that together make a folder
 * a repository. The sandbox allows each of these files alone, so it cannot refuse them. Paths are in
 * git's own quoting.
 */
export function requireWritable(repository: HasRoot, raws: readonly string[]): void {
  const paths = raws.map((raw) => `/${unquote(raw)}/`);
  const protectedPath = paths.find((path) => isProtected(repository, path, "write"));
  if (protectedPath !== undefined) {
    throw protectedError(repository, protectedPath.slice(1, -1), "write");
  }
  const folders = new Set(
    paths.flatMap((path) =>
      [...path.matchAll(/\/(?=(?:HEAD|objects|commondir)\/)/gi)].map(({ index }) =>
        path.slice(0, index + 1)
      )
    ),
  );
  for (const folder of folders) {
    const has = (name: string) =>
      paths.some((path) => path.toLowerCase().startsWith(`${folder}${name}/`.toLowerCase())) ||
      exists(`${repository.root}${folder}${name}`);
    if (has("HEAD") && (has("objects") || has("commondir"))) {
      throw protectedError(repository, folder.slice(1), "write");
    }
  }
}

/** Removes the content of protected files from a patch. */
export function withoutSecrets(
  { files, patch }: { readonly files: readonly Change[]; readonly patch: string },
  repository: HasRoot,
): string {
  const readableHeaders = new Set(
    files.filter(({ path, from = path }) =>
      ![path, from].some((name) => isProtected(repository, name, "read"))
    ).map(({ path, from = path }) => `diff --git a/${from} b/${path}`),
  );
  return patch.split(/^(?=diff --git )/m).map((part) => {
    const [header = ""] = part.split("\n", 1);
    // If the name of a file is not clear, for example not UTF-8, the file counts as protected.
    const isOpen = readableHeaders.has(header.replace(/"(?:[^"\\]|\\.)*"/g, unquote));
    return isOpen || !/^diff --git /.test(header)
      ? part
      : `${header}\n[its content is protected]\n`;
  }).join("");
}

/** Returns whether the sandbox protects a file. It decides by the name, before opening the file. */
function isProtected({ root }: HasRoot, path: string, access: Access): boolean {
  // A name that is not UTF-8 is in the quotes of git.
  const fullPath = `${root}/${path.replaceAll('"', "")}`;
  try {
    Deno.openSync(fullPath, { [access]: true }).close();
  } catch (error) {
    return Object(error).code === "PATH_PROTECTED";
  }
  return false;
}

function exists(path: string): boolean {
  try {
    return Boolean(Deno.lstatSync(path));
  } catch {
    return false; // missing or unreadable
  }
}

function protectedError({ root }: HasRoot, path: string, access: Access): Error {
  const shownPath = `${root}/${path}`.slice(Deno.cwd().length + 1);
  const error = new Error(`Cannot ${access} ${quoted(shownPath)}: it is protected`);
  return Object.assign(error, { code: "PATH_PROTECTED" });
}
