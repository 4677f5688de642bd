/**
 * Reads the command line: runs the command that it names, or shows its help.
 *
 * @module
 */

import { Command, CommanderError } from "commander";
import type { PmlError } from "../core/errors.ts";
import { memberOf, quoted } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import { VERSION } from "../core/version.ts";
import { report, usage } from "./_failure.ts";
import type { CommandInput } from "./_command_context.ts";
import { COMMANDS } from "./_commands.ts";
import { examples, helpText, OPTIONS } from "./_help.ts";
import { paintHelp } from "./_paint.ts";
import { shellWord } from "./_shell_word.ts";
import { print } from "./out.ts";

/** PML's commands by the names that other programs use for them. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  unallow: "allow --remove",
  rm: "remove",
  delete: "remove",
  ls: "list",
  status: "",
  version: "--version",
  run: "call",
  exec: "call",
  schema: "tools",
  log: "logs",
  keys: "key list",
  rule: "rules",
  setup: "init",
  start: "serve",
};

/** Matches programs that start servers. A user may type one in place of a name. */
const STARTERS = /^(?:npx|uvx|bunx|pnpm|node|deno|bun|python3?|docker|podman)$/;

/** Runs the command that the arguments name, and returns the exit code. */
export async function runCommand(args: readonly string[]): Promise<number> {
  let code = 0;
  const program = makeProgram(async (work) => {
    code = await work();
  });
  try {
    if (args.length === 0) return await runByName("", { words: [] });
    await program.parseAsync(keepSearchWords(args), { from: "user" });
    return code;
  } catch (error) {
    if (!(error instanceof CommanderError)) return report(error, args);
    if (error.exitCode === 0) return 0;
    return report(toUsageError(error, args), args);
  }
}

/**
 * Returns the arguments with a space before the first word after `--`. Without it, commander would
 * read `install-model` there as a subcommand instead of a word to search for.
 */
export function keepSearchWords(args: readonly string[]): readonly string[] {
  const [command, ...rest] = args;
  const wordIndex = rest.indexOf("--") + 1;
  if (command !== "search" || wordIndex === 0 || wordIndex === rest.length) return args;
  return [command, ...rest.with(wordIndex, ` ${rest[wordIndex]}`)];
}

/** Returns an error of commander as a `USAGE` error. */
function toUsageError({ message }: CommanderError, args: readonly string[]): PmlError {
  const reason = message.replace(/^error: |^\(outputHelp\)$/, "").replaceAll("'", '"')
    .replace("\n", " ").replace(/ \(Did you mean (?:one of )?(.*)\?\)/, '. Did you mean "$1"?')
    .replace(/\.$/, "");
  const [word = "", ...rest] = args;
  const tried = `Cannot run ${quoted(`pml ${args.join(" ")}`)}`;
  const isNear = /Did you mean/.test(reason);
  const pmlCommand = memberOf(OTHER_WORDS, word) ??
    (isNear ? undefined : memberOf(OTHER_WORDS, nearName(word, Object.keys(OTHER_WORDS)) ?? ""));
  if (pmlCommand !== undefined && !isCommand(word)) {
    const words = rest.map((one) => shellWord(one)).join(" ") || (word === "unallow" ? "RULE" : "");
    return usage(
      `${tried}: unknown command ${quoted(word)}`,
      `Run \`${["pml", pmlCommand, words].filter(Boolean).join(" ")}\``,
    );
  }
  return usage(
    `${tried}: ${reason || "unknown command"}`,
    separatedCommand(args, reason) ?? `Look at \`pml ${isCommand(word) ? `${word} ` : ""}--help\``,
  );
}

/**
 * Returns the hint for an option of another program, such as \`pml add files npx -y PACKAGE\`: the
 * command line with \`--\` before that program. Returns undefined for other errors.
 */
function separatedCommand(args: readonly string[], reason: string): string | undefined {
  const [, option = ""] = /^unknown option "(.*)"$/.exec(reason) ?? [];
  const own = args[0] === "add"
    ? ["add"]
    : args[0] === "key" && args[1] === "from" && ["key", "from"];
  if (!own || option === "" || args.includes("--")) return undefined;
  // The words before the option are the name and the program, or the program and its arguments.
  const words = args.slice(own.length, args.indexOf(option));
  if (words.length === 0 || words.some((word) => word.startsWith("-"))) return undefined;
  const hasNoName = words.length === 1 || STARTERS.test(words[0] ?? "");
  const [name = "", ...command] = [...hasNoName ? ["NAME"] : [], ...args.slice(own.length)];
  const typed = ["pml", ...own, name, "--", ...command].map((one) => shellWord(one)).join(" ");
  return `Write -- before the command: \`${typed}\``;
}

function isCommand(word: string | undefined): boolean {
  return Object.values(COMMANDS).flat().some(({ usage }) => usage.split(" ")[0] === word);
}

/** Creates the parser of the command line. `start` receives a function that runs the command. */
export function makeProgram(start: (work: () => Promise<number>) => Promise<void>): Command {
  const program = new Command("pml")
    .version(VERSION, ...OPTIONS.version)
    .helpOption(...OPTIONS.help)
    .exitOverride()
    // The error is shown once, by `report`, as every other error is.
    .configureOutput({
      writeOut: (text) => print(text, paintHelp),
      writeErr: () => {},
      outputError: () => {},
    });
  program.helpInformation = helpText;
  for (const rows of Object.values(COMMANDS)) {
    for (const row of rows) {
      const parent = program.commands.find((one) => one.name() === row.under) ?? program;
      const command = parent.command(row.usage).description(row.does)
        .addHelpText("after", examples(row.examples ?? [`pml ${row.usage.split(" ", 1)}`]));
      for (const [flags, does] of Object.entries(row.options ?? {})) command.option(flags, does);
      if (row.passesOn) command.allowUnknownOption().helpOption(false);
      command.action(() =>
        start(() =>
          runByName(command.name(), { ...command.optsWithGlobals(), words: command.args })
        )
      );
    }
  }
  return program;
}

async function runByName(name: string, input: CommandInput): Promise<number> {
  const { RUNS } = await import("./_runs.ts");
  const run = RUNS[name];
  if (run === undefined) throw new Error(name);
  return await run(input);
}
