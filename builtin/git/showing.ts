/**
 * Makes answers: a text that reads well, the same as data, and a word on what was cut.
 *
 * @module
 */

import { type Change, shown } from "./parsing.ts";
import { withoutSecrets } from "./secret.ts";

/** What keeps a patch from being made by a program, or a submodule from being entered for it. */
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

/** Gives an answer as MCP has it. */
export function answer(text: string, structuredContent: object) {
  return { content: [{ type: "text", text }], structuredContent };
}

/** Gives the part of a text from `offset` on, whole lines of it, and says where it goes on. */
export function part(text: string, offset = 0) {
  if (text.length - offset <= MAX_TEXT) return { text: text.slice(offset), cut: {}, note: "" };
  const room = text.slice(offset, offset + MAX_TEXT);
  const kept = room.slice(0, room.lastIndexOf("\n") + 1) || room;
  const next = offset + kept.length;
  const hint = `[cut at ${next} of ${text.length} characters; go on with offset ${next}]`;
  return { text: kept, cut: { next_offset: next, characters: text.length }, note: `\n${hint}` };
}

/** Answers with a patch, and before it what stands above it. */
export function patched(
  { files, patch }: { readonly files: readonly Change[]; readonly patch: string },
  { offset, head = "", told = {} }: {
    readonly offset: number | undefined;
    readonly head?: string;
    readonly told?: object;
  },
) {
  const { text, cut, note } = part(withoutSecrets(patch), offset);
  const sum = (key: "additions" | "deletions") =>
    files.reduce((total, file) => total + (file[key] ?? 0), 0);
  const [additions, deletions] = [sum("additions"), sum("deletions")];
  // All that changed is named where not all of it is shown.
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

/** Says how many rows were left out. */
export function more(count: number, limit: number, hint = "give paths"): string[] {
  return count > limit ? [`[${count - limit} more; ${hint}]`] : [];
}
