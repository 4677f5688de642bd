/**
 * `pml --help`: shows all commands. Does not load the library that parses command lines, because
 * loading it takes longer than the rest of this command.
 *
 * @module
 */

import { COMMANDS } from "./_commands.ts";
import type { CommandRow } from "./_command_row.ts";
import { isPiped, printPlain } from "./_version.ts";

/** The names and descriptions of `--version` and `--help`. */
export const OPTIONS = {
  version: ["-v, --version", "show the version"],
  help: ["-h, --help", "show this help"],
} as const;

const HELP: CommandRow = {
  usage: "help [command]",
  does: "display help for command",
};
const INTRODUCTION = `Usage: pml [options] [command]

One MCP server between your AI client and every tool
`;
/** The text after the commands. */
const FOOTER = `${examples(["pml init", "pml call filesystem:read_file path=README.md"])}

Options of a command: pml COMMAND --help
Exit codes: 0 success, 1 failure, 2 wrong usage or configuration.`;

/** Prints the help, and returns the exit code. */
export async function help(): Promise<number> {
  if (isPiped()) return printPlain(helpText());
  const { printHelp } = await import("./_painted_help.ts");
  printHelp(helpText());
  return 0;
}

/** Returns the text of the help. */
export function helpText(): string {
  const lists: [string, (readonly [term: string, does: string])[]][] = [
    ["Options:", Object.values(OPTIONS).map(([flags, does]) => [flags, does])],
    ...Object.entries({ ...COMMANDS, "Commands:": [HELP] }).map(([title, rows]) =>
      [
        title,
        rows.filter(({ under }) => under === undefined).map(({ usage, does }) => [usage, does]),
      ] as typeof lists[number]
    ),
  ];
  const width = Math.max(...lists.flatMap(([, rows]) => rows.map(([term]) => term.length)));
  const texts = lists.map(([title, rows]) =>
    [title, ...rows.map(([term, does]) => `  ${term.padEnd(width)}  ${does}`)].join("\n")
  );
  return [INTRODUCTION, texts.join("\n\n"), FOOTER].join("\n");
}

/** Returns a section with examples of command lines. */
export function examples(lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join("\n")}`;
}
