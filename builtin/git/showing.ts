/**
 * Makes results: a text to read, the same as data, and a note about omitted parts.
 *
 * @module
 */

import { type Change, shown } from "./parsing.ts";
import type { Repository } from "./repository.ts";
import { withoutSecrets } from "./secret.ts";

/** Options that keep git from starting a program for a patch, and from entering a submodule. */
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
export function answer(text: string, structuredContent: object) {
  return { content: [{ type: "text", text }], structuredContent };
}

/** Returns whole lines of a text from `offset` on, and where the rest begins. */
export function part(text: string, offset = 0) {
  if (text.length - offset <= MAX_TEXT) return { text: text.slice(offset), cut: {}, note: "" };
  const room = text.slice(offset, offset + MAX_TEXT);
  const kept = room.slice(0, room.lastIndexOf("\n") + 1) || room;
  const next = offset + kept.length;
  const hint = `[cut at ${next} of ${text.length} characters; go on with offset ${next}]`;
  return { text: kept, cut: { next_offset: next, characters: text.length }, note: `\n${hint}` };
}

/** Returns a result with a patch, and `head` before it. */
export function patched(
  { files, patch }: { readonly files: readonly Change[]; readonly patch: string },
  { repository, offset, head = "", told = {} }: {
    readonly repository: Repository;
    readonly offset: number | undefined;
    readonly head?: string;
    readonly told?: object;
  },
) {
  const { text, cut, note } = part(withoutSecrets({ files, patch }, repository), offset);
  const sum = (key: "additions" | "deletions") =>
    files.reduce((total, file) => total + (file[key] ?? 0), 0);
  const [additions, deletions] = [sum("additions"), sum("deletions")];
  // If not all of the patch is shown, all changed files are listed.
  const list = note === "" || offset ? [] : [
    `${files.length} files, +${additions} -${deletions}:`,
    ...files.slice(0, MAX_FILES).map((file) =>
      `${shown(file.path)} +${file.additions ?? "?"} -${file.deletions ?? "?"}`
    ),
    ...more(files.length, MAX_FILES),
    "",
  ];
  const body = text === "" ? ["No changes"] : [text];
  return answer([...(head ? [head] : []), ...list, ...body].join("\n") + note, {
    ...told,
    files: files.slice(0, MAX_FILES),
    file_count: files.length,
    additions,
    deletions,
    patch: text,
    ...cut,
  });
}

/** Returns a line that says how many rows were omitted. */
export function more(count: number, limit: number, hint = "give paths"): string[] {
  return count > limit ? [`[${count - limit} more; ${hint}]`] : [];
}
