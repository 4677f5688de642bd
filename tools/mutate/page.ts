/**
 * What became of the mutants, as a table for people.
 *
 * @module
 */

import type { Mutant } from "./mutant.ts";
import type { Fate, Tried } from "./try.ts";

/** Mutants that belong together. */
export interface Chapter {
  readonly title: string;
  readonly mutants: readonly Mutant[];
}

const HEAD = `# Tests of the guards

Each row is one guard: a check that keeps code, data or a person safe. \`deno task mutate\` takes one
guard away at a time, in a copy of the project, and runs the test of its row. The test must be green
with the guard, and without it an assertion of it must fail: then the result is \`red\`. Where a guard
keeps a call from hanging, the test may also fail because no answer came. The guards are in
\`tools/mutate/\`, and \`deno task mutate --write\` writes this page.

\`held twice\` means that the test is green without the guard, because another one holds the same.
`;

/** A row: the guard, its file, the file of its test and the result. */
const ROW = /^\| (.+?) +\| `([^`]+)` +\| .* \| `([^`]+)`: .* \| (red|held twice) +\|$/;

/** Returns the page of all guards. */
export function pageOf(chapters: readonly Chapter[], tried: readonly Tried[]): string {
  const byName = new Map(tried.map((one) => [one.mutant.name, one]));
  const parts = chapters.map(({ title, mutants }) => {
    const rows = mutants.map((mutant) =>
      rowOf(byName.get(mutant.name) ?? { mutant, fate: "stale" })
    );
    const head = ["guard", "file", "what is removed", "the test that turns red", "result"];
    return `## ${title}\n\n${tableOf([head, ...rows])}`;
  });
  return [HEAD, ...parts].join("\n");
}

/** Reads what a page says of mutants, so that its other rows can be written anew. */
export function triedIn(page: string, mutants: readonly Mutant[]): readonly Tried[] {
  const rows = new Map(
    page.split("\n").flatMap((line) => {
      const [, guard, path, test, fate] = ROW.exec(line) ?? [];
      return guard === undefined ? [] : [[guard, { path, test, fate }] as const];
    }),
  );
  return mutants.flatMap((mutant) => {
    const { path, test, fate } = rows.get(mutant.guard) ?? {};
    if (path === undefined || test === undefined) return [];
    return [{ mutant, path, test, fate: fate as Fate }]; // the expression has no others
  });
}

/** Returns one line of what became of a mutant, and why where it is not red. */
export function lineOf({ mutant, fate, path, why }: Tried): string {
  const more = why === undefined
    ? ""
    : `\n    ${why.trim().split("\n").slice(0, 12).join("\n    ")}`;
  return `${fate.padEnd(13)} ${mutant.name} (${path ?? mutant.file})${more}`;
}

function rowOf({ mutant, fate, path = mutant.file, test = mutant.test }: Tried): readonly string[] {
  const { guard, find, put, filter } = mutant;
  const removed = put === "" ? code(find) : `${code(find)} becomes ${code(put)}`;
  return [guard, `\`${path}\``, removed, `\`${test}\`: ${escaped(filter)}`, fate];
}

/**
 * Writes code in one line, so that it stands in a cell of a table. A tick at one of its ends would
 * count with those around it: three dots keep them apart.
 */
function code(text: string): string {
  const line = text.trim().replace(/\s+/g, " ").replaceAll("|", "\\|").replace(
    /^(?=`)|(?<=`)$/g,
    "…",
  );
  const ticks = line.includes("`") ? "``" : "`";
  return line === "" ? "nothing" : `${ticks}${line}${ticks}`;
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("*", "\\*");
}

/** Lays cells out as `deno fmt` does. */
function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(3, ...rows.map((row) => [...row[at] ?? ""].length))
  );
  const lineOf = (cells: readonly string[]) =>
    `| ${cells.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  const [head = [], ...body] = rows;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  return [lineOf(head), rule, ...body.map(lineOf), ""].join("\n");
}
