/**
 * Reads commits, and files of earlier revisions.
 *
 * @module
 */

import { pathIn } from "./asking.ts";
import { fail } from "./failure.ts";
import type { Repository } from "./repository.ts";
import { requireReadable } from "./secret.ts";
import { cutText, toResult } from "./showing.ts";

/** The fields of each commit. Each field ends with NUL. */
export const COMMIT = "%H%x00%P%x00%an%x00%ae%x00%aI%x00%D%x00%B%x00";
export const COMMIT_FIELDS = 7;
const BODY_MAX = 2_000;

/** Returns a commit from its fields. */
export function commitOf(fields: readonly string[]) {
  const [hash = "", parents = "", name = "", email = "", date = "", refs = "", body = ""] = fields;
  const [subject = "", ...rest] = body.trimEnd().split("\n");
  const text = rest.join("\n").trim();
  return {
    hash: hash.trim(),
    parents: parents.split(" ").filter((parent) => parent !== ""),
    author: { name, email },
    date,
    refs: refs.split(", ").filter((ref) => ref !== ""),
    subject,
    ...(text && { body: text.length > BODY_MAX ? `${text.slice(0, BODY_MAX)}…` : text }),
  };
}

/** Shows an earlier version of a file, or the list of a folder at that time. */
export async function showFile(
  repository: Repository,
  { rev, path, offset }: {
    readonly rev: string;
    readonly path: string;
    readonly offset: number | undefined;
  },
) {
  const { what, git } = repository;
  const names = pathIn(repository, path).split("/").filter((name) => name !== "." && name !== "");
  requireReadable(repository, names.join("/"));
  const text = await git([
    "show",
    "--no-textconv",
    "--end-of-options",
    `${rev}:${names.join("/")}`,
  ]);
  if (text.includes("\0")) throw fail(what, "it is a binary file");
  const { text: content, cut, note } = cutText(text, offset);
  return toResult(content + note, { content, ...cut });
}
