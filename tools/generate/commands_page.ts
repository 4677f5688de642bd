/**
 * Writes `docs/commands.md` from the table of commands.
 *
 * @module
 */

import type { CommandRow } from "../../src/cli/_command_row.ts";
import { COMMANDS } from "../../src/cli/_commands.ts";

/** The heading from which on the page is written by hand. */
const TEXT = "## Output and errors";

/** Returns the page with the commands from the table. Keeps the part that is written by hand. */
export function commandsPage(page: string): string {
  const groups = Object.entries(COMMANDS).flatMap(([title, rows]) => [
    `## ${title.replace(/:$/, "")}`,
    "",
    "| command | description |",
    "| --- | --- |",
    ...rows.map((row) => `| \`${nameOf(row)}\` | ${cell(row.does)}${linkOf(row)} |`),
    "",
    ...rows.flatMap(detailsOf),
  ]);
  return [
    "# Commands",
    "",
    "`pml` alone reports the state of this workspace and the next step. Each command has `--help`.",
    "",
    ...groups,
    page.slice(page.indexOf(TEXT)),
  ].join("\n");
}

function detailsOf(row: CommandRow): readonly string[] {
  const options = Object.entries(row.options ?? {});
  const examples = (row.examples ?? []).map((line) => `\`${line}\``);
  if (options.length + examples.length === 0) return [];
  return [
    `### \`${nameOf(row).replace(/ [<[].*/, "")}\``,
    "",
    ...options.length > 0 ? ["| option | description |", "| --- | --- |"] : [],
    ...options.map(([flags, does]) => `| \`${flags}\` | ${cell(does)} |`),
    "",
    ...examples.length > 0 ? [`For example ${examples.join(", ")}.`, ""] : [],
  ];
}

function nameOf({ usage, under }: CommandRow): string {
  return ["pml", under, usage].filter((word) => word !== undefined).join(" ");
}

function linkOf({ page }: CommandRow): string {
  return page === undefined ? "" : ` ([more](${page}))`;
}

function cell(text: string): string {
  return text.replaceAll(/[*|<]/g, "\\$&").replaceAll(
    /\$\{\w+\}|NAME='.*?'|'NAME: VALUE'/g,
    "`$&`",
  );
}
