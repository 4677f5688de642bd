/**
 * Lists the definitions that the trust in a workspace file covers, and marks new ones.
 *
 * @module
 */

import { quoted } from "../core/json.ts";
import { unhidden } from "./_question.ts";
import type { ShownFile, ShownModule } from "./workspace_trust.ts";

const OUTSIDE = "outside the workspace, so it is read after a yes, and asked about by itself";

/**
 * Returns a line for each definition of a file. A terminal shows the lines unchanged, so invisible
 * characters are escaped.
 */
export async function trustLines(
  { lines, modules }: Pick<ShownFile, "lines" | "modules">,
): Promise<readonly string[]> {
  return [
    ...await lines(),
    ...modules.map(({ name, integrity, outside }) =>
      `code of "${name}": ${integrity ?? (outside ? OUTSIDE : "the file cannot be read")}`
    ),
  ].map(unhidden);
}

/** Returns the lines of the question. `before` has the lines that the user saw at the last yes. */
export function trustFacts(
  { path, linked, hash }: ShownFile,
  { lines, before }: {
    readonly lines: readonly string[];
    readonly before: readonly string[] | undefined;
  },
): readonly string[] {
  const link = "The workspace file is a link, so a yes is refused: put the file itself there";
  return [
    ...(linked ? [link] : []),
    `If you answer yes, PML trusts the workspace file ${
      unhidden(quoted(path, 400))
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
  { name, path, integrity }: ShownModule,
  before: string | undefined,
): string {
  const was = before === undefined ? "it was never approved" : `approved was ${before}`;
  return `the code of "${name}" in ${quoted(path, 400)} has changed: it is ${integrity}, ${was}`;
}
