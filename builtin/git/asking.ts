/**
 * Converts the arguments of a call to arguments of git. Git cannot read any value as an option, a
 * pattern or a path outside of the repository.
 *
 * @module
 */

import { fail, quoted } from "./failure.ts";
import { isAbsolute, slashed } from "./place.ts";
import type { Repository } from "./repository.ts";

/**
 * A revision: a name, a hash or an expression. Characters of options, exclusions, patterns and
 * searches are not allowed.
 */
const REVISION = /^(?![-^])[^\p{C}\p{Z}\\?*[:]{1,250}$/u;
const OCTAL = /^".*\\[0-7]{3}.*"$/s;

/** Checks a revision, or a range of revisions. */
export function revision({ what }: Pick<Repository, "what">, text: string, range = false): string {
  const why = !REVISION.test(text)
    ? "it is no name, hash or expression such as HEAD~2"
    : !range && text.includes("..")
    ? "it is a range, and one revision is wanted"
    : undefined;
  if (why === undefined) return text;
  throw fail(what, `${quoted(text)} cannot be the revision: ${why}`);
}

/** Checks paths. Returns the arguments that follow the revisions on a command line. */
export function pathspec(repository: Repository, paths: readonly string[] = []): string[] {
  return ["--", ...paths.map((path) => pathIn(repository, path))];
}

/** Checks a path and makes it relative to the repository. */
export function pathIn(
  { what, root }: Pick<Repository, "what" | "root">,
  path: string,
  os = Deno.build.os,
): string {
  const plain = slashed(path, os);
  const [whole, folder] = os === "windows"
    ? [plain.toLowerCase(), root.toLowerCase()]
    : [plain, root];
  const relative = whole === folder
    ? "."
    : whole.startsWith(`${folder}/`)
    ? plain.slice(root.length + 1)
    : plain;
  const why = pathProblem(relative, os);
  if (why === undefined) return relative;
  throw fail(what, `${quoted(path)} cannot be a path: ${why}`);
}

function pathProblem(path: string, os: string): string | undefined {
  if (path === "") return "it is empty";
  if (path.includes("\0")) return "it holds NUL";
  if (path.startsWith("-")) return `it begins like an option; write "./${path}"`;
  if (isAbsolute(path, os) || path.split("/").includes("..")) {
    return "it leads out of the repository";
  }
  return OCTAL.test(path) ? "its name is not UTF-8; give its folder" : undefined;
}

/** Checks a text that becomes part of an option. */
export function optionText({ what }: Repository, text: string): string {
  if (text.includes("\0")) throw fail(what, "a text holds NUL");
  return text;
}
