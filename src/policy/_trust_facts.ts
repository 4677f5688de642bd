/**
 * Lists the definitions that the trust in a workspace file covers, and marks new ones.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { escapeInvisible } from "./_question.ts";
import { codeLine } from "./trust.ts";
import type { ChangedCode } from "./server_identity.ts";
import type { ShownFile } from "./workspace_trust.ts";

const OUTSIDE =
  "outside the workspace: PML reads it after you answer yes, and asks about it separately";

/**
 * Returns a line for each definition of a file. A terminal shows the lines unchanged, so invisible
 * characters are escaped.
 */
export async function trustLines(
  { lines, modules }: Pick<ShownFile, "lines" | "modules">,
): Promise<readonly string[]> {
  return [
    ...await lines(),
    ...modules.map(({ name, integrity, isOutside }) =>
      codeLine(name, integrity ?? (isOutside ? OUTSIDE : "the file cannot be read"))
    ),
  ].map(escapeInvisible);
}

/**
 * Returns the lines of the question about a file. `before` are the lines that the user saw when the
 * file was trusted last; undefined if it never was.
 */
export function trustFacts(
  { path, isLink, hash }: ShownFile,
  { lines, before }: {
    readonly lines: readonly string[];
    readonly before: readonly string[] | undefined;
  },
): readonly string[] {
  const link = "The workspace file is a link, so a yes is refused: put the file itself there";
  return [
    ...(isLink ? [link] : []),
    `If you answer yes, PML trusts the workspace file ${
      escapeInvisible(quoted(path, 400))
    } as it is now ` +
    `(sha256 ${hash}). It contains:`,
    ...(lines.length === 0 ? ["nothing that needs trust"] : withSigns(lines, before)),
  ];
}

/** Moves new and removed lines to the front and marks them. The first question has no marks. */
function withSigns(
  lines: readonly string[],
  before: readonly string[] | undefined,
): readonly string[] {
  if (before === undefined) return lines;
  const newLines = lines.filter((line) => !before.includes(line));
  const oldLines = before.filter((line) => !lines.includes(line));
  const same = lines.filter((line) => before.includes(line));
  return [
    ...(newLines.length + oldLines.length === 0
      ? []
      : ["Since you trusted it last (+ new, - gone):"]),
    ...newLines.map((line) => `+ ${line}`),
    ...oldLines.map((line) => `- ${line}`),
    ...(same.length === 0 ? [] : ["You trusted these before:", ...same]),
  ];
}

/** Returns the line for a module whose code is not the approved one. */
export function changedLine(
  { name, path, integrity, approved }: ChangedCode,
): string {
  const code = `the code of "${name}" in ${quoted(path, 400)}`;
  return approved === undefined
    ? `${code} is new: it is ${integrity}, and no code of it was approved`
    : `${code} has changed: it is ${integrity}, approved was ${approved}`;
}
