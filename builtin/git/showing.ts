/**
 * Builds results: a text to read, the same values as data, and a note about omitted parts.
 *
 * @module
 */

import { type Change, onOneLine } from "./parsing.ts";
import type { Repository } from "./repository.ts";
import { withoutSecrets } from "./secret.ts";

/** Options with which a patch starts no program and enters no submodule. */
export const PLAIN = [
  "--no-ext-diff",
  "--no-textconv",
  "--no-color",
  "--ignore-submodules=dirty",
  "--submodule=short",
];
const PREFIX = ["--src-prefix=a/", "--dst-prefix=b/"];
export const PATCH = [...PLAIN, "--raw", "--numstat", "--patch", "--find-renames", ...PREFIX];
const MAX_TEXT = 60_000;
const MAX_FILES = 500;

/** Returns a result of MCP. */
export function toResult(text: string, structuredContent: object) {
  return { content: [{ type: "text", text }], structuredContent };
}

/** Returns whole lines of a text from `offset` on, and the offset of the next part. */
export function cutText(text: string, offset = 0) {
  if (text.length - offset <= MAX_TEXT) return { text: text.slice(offset), cut: {}, note: "" };
  const fitting = text.slice(offset, offset + MAX_TEXT);
  const wholeLines = fitting.slice(0, fitting.lastIndexOf("\n") + 1) || fitting;
  const next = offset + wholeLines.length;
  const hint = `[cut at ${next} of ${text.length} characters; go on with offset ${next}]`;
  return {
    text: wholeLines,
    cut: { next_offset: next, characters: text.length },
    note: `\n${hint}`,
  };
}

/** Returns a result with a patch, and `head` before it. */
export function patchResult(
  { files, patch }: { readonly files: readonly Change[]; readonly patch: string },
  { repository, offset, head = "", fields = {} }: {
    readonly repository: Repository;
    readonly offset: number | undefined;
    readonly head?: string;
    readonly fields?: object;
  },
) {
  const { text, cut, note } = cutText(withoutSecrets({ files, patch }, repository), offset);
  const sum = (key: "additions" | "deletions") =>
    files.reduce((total, file) => total + (file[key] ?? 0), 0);
  const [additions, deletions] = [sum("additions"), sum("deletions")];
  // If the patch is cut, all changed files are listed before it.
  const list = note === "" || offset ? [] : [
    `${files.length} files, +${additions} -${deletions}:`,
    ...files.slice(0, MAX_FILES).map((file) =>
      `${onOneLine(file.path)} +${file.additions ?? "?"} -${file.deletions ?? "?"}`
    ),
    ...omittedNote(files.length, MAX_FILES),
    "",
  ];
  const body = text === "" ? ["No changes"] : [text];
  return toResult([...(head ? [head] : []), ...list, ...body].join("\n") + note, {
    ...fields,
    files: files.slice(0, MAX_FILES),
    file_count: files.length,
    additions,
    deletions,
    patch: text,
    ...cut,
  });
}

/** Returns a line with the number of omitted rows; no line if all rows are shown. */
export function omittedNote(count: number, limit: number, hint = "give paths"): string[] {
  return count > limit ? [`[${count - limit} more; ${hint}]`] : [];
}
