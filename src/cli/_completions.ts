/**
 * `pml completions`: prints a script that lets a shell complete commands, options and servers.
 *
 * @module
 */

import { READS_RULE_NAME } from "../core/pattern.ts";
import { findKind } from "../servers/kinds.ts";
import type { CommandRow } from "./_command_row.ts";
import { type CommandInput, inContext } from "./_command_context.ts";
import { usage } from "./_failure.ts";
import { print } from "./out.ts";

/** The scripts by shell. Each runs `pml completions words`, which starts no server. */
const SCRIPTS = new Map([
  [
    "bash",
    `_pml() {
  local words
  words=$(pml completions words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}")
}
complete -o default -F _pml pml`,
  ],
  [
    "zsh",
    `#compdef pml
_pml() {
  local -a found
  found=(\${(f)"$(pml completions words -- "\${(@)words[2,CURRENT]}" 2>/dev/null)"})
  compadd -- $found || _files
}
compdef _pml pml`,
  ],
  [
    "fish",
    `function __pml_words
  pml completions words -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete -c pml -a '(__pml_words)'`,
  ],
]);

/** Prints the script for a shell. For "words", prints the possible last words of a command line. */
export async function completions(
  rows: readonly CommandRow[],
  input: CommandInput,
): Promise<number> {
  const [shell = "", ...line] = input.words;
  if (shell === "words") return await printCompletions(rows, line);
  const script = line.length === 0 ? SCRIPTS.get(shell) : undefined;
  if (script === undefined) {
    throw usage(
      `Cannot print completions for "${input.words.join(" ")}"`,
      `Use one of ${[...SCRIPTS.keys()].join(", ")}`,
    );
  }
  print(script);
  return 0;
}

async function printCompletions(
  rows: readonly CommandRow[],
  line: readonly string[],
): Promise<number> {
  const [name = "", ...more] = line;
  const topRows = rows.filter(({ under }) => under === undefined);
  if (more.length === 0) return printWords(topRows.map(nameOf));
  const row = topRows.find((each) => nameOf(each) === name);
  if (more.at(-1)?.startsWith("-")) {
    return printWords([
      "--help",
      ...Object.keys(row?.options ?? {}).map((flag) => flag.split(" ")[0]),
    ]);
  }
  const [first = "", ...others] = more.filter((word) => !word.startsWith("-"));
  if (name === "config" && first === "set" && more.length > 1) {
    const { userConfigSchema, workspaceSchema } = await import("../config/settings.ts");
    const { settingWords } = await import("./_setting_keys.ts");
    const file = more.includes("--workspace") ? workspaceSchema : userConfigSchema;
    return printWords(settingWords(file.schema(), others));
  }
  const fixedWords = more.length === 1 ? row?.words ?? [] : [];
  const subcommands = [...rows.filter(({ under }) => under === name).map(nameOf), ...fixedWords];
  const { usage = "" } = row ?? {};
  if (!/<server|\[server|<rule>/.test(usage)) return printWords(subcommands);
  const servers = inContext(({ app }) => {
    const states = app.servers.states();
    const modules = states.filter(({ kind }) => findKind(kind)?.isSandboxed);
    const rules = usage.includes("<rule>")
      ? modules.map(({ name }) => `${name}:${READS_RULE_NAME}`)
      : [];
    const all = [...states.map(({ name }) => name), ...rules];
    return Promise.resolve({ value: all, text: [...subcommands, ...all].join("\n") });
  }, { runsWhenBroken: true, reportsIgnoredVariables: true });
  return await servers({ words: [] });
}

function nameOf({ usage }: CommandRow): string {
  return usage.split(" ", 1)[0] ?? "";
}

function printWords(words: readonly (string | undefined)[]): number {
  if (words.length > 0) print(words.join("\n"));
  return 0;
}
