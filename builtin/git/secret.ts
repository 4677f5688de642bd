/**
 * Keeps git from files that the sandbox closes: it runs with the rights of the user, so it would
 * show and change them.
 *
 * @module
 */

import { quoted } from "./failure.ts";
import { type Change, unquoted } from "./parsing.ts";

/** A repository, of which only the folder matters here. */
interface Rooted {
  readonly root: string;
}

type Access = "read" | "write";

/** Throws `PATH_PROTECTED` if the sandbox closes a file of a repository for reading. */
export function requireOpen(repository: Rooted, path: string): void {
  if (isClosed(repository, path, "read")) throw refused(repository, path, "read");
}

/**
 * Throws if git would write a file that is closed, or files that make a folder a repository: each of
 * them may be open as long as the others are not there. Takes paths in git's own quoting.
 */
export function requireWritable(repository: Rooted, raws: readonly string[]): void {
  const paths = raws.map((raw) => `/${unquoted(raw)}/`);
  const closed = paths.find((path) => isClosed(repository, path, "write"));
  if (closed !== undefined) throw refused(repository, closed.slice(1, -1), "write");
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
      isThere(`${repository.root}${folder}${name}`);
    if (has("HEAD") && (has("objects") || has("commondir"))) {
      throw refused(repository, folder.slice(1), "write");
    }
  }
}

/** Removes the content of closed files from a patch. */
export function withoutSecrets(
  { files, patch }: { readonly files: readonly Change[]; readonly patch: string },
  repository: Rooted,
): string {
  const open = new Set(
    files.filter(({ path, from = path }) =>
      ![path, from].some((one) => isClosed(repository, one, "read"))
    ).map(({ path, from = path }) => `diff --git a/${from} b/${path}`),
  );
  return patch.split(/^(?=diff --git )/m).map((part) => {
    const [header = ""] = part.split("\n", 1);
    // In doubt a file is treated as closed, as where its name is not UTF-8.
    const isOpen = open.has(header.replace(/"(?:[^"\\]|\\.)*"/g, unquoted));
    return isOpen || !/^diff --git /.test(header)
      ? part
      : `${header}\n[its content is protected]\n`;
  }).join("");
}

/** Returns whether a file is closed. The sandbox says so by its name, before it looks at it. */
function isClosed({ root }: Rooted, path: string, access: Access): boolean {
  // A name that is not UTF-8 is in the quotes of git.
  const whole = `${root}/${path.replaceAll('"', "")}`;
  try {
    Deno.openSync(whole, { [access]: true }).close();
  } catch (error) {
    return Object(error).code === "PATH_PROTECTED";
  }
  return false;
}

function isThere(path: string): boolean {
  try {
    return Boolean(Deno.lstatSync(path));
  } catch {
    return false; // or it cannot be looked at
  }
}

function refused({ root }: Rooted, path: string, access: Access): Error {
  const own = `${root}/${path}`.slice(Deno.cwd().length + 1);
  const error = new Error(`Cannot ${access} ${quoted(own)}: it is protected`);
  return Object.assign(error, { code: "PATH_PROTECTED" });
}
