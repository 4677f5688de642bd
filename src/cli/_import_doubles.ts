/**
 * Finds doubles: imported servers that do the same as a built-in server of PML. Asks which of the two
 * to leave out.
 *
 * @module
 */

import type { ImportableServer } from "../config/client_servers.ts";
import { quoted } from "../core/json.ts";
import type { CommandContext } from "./_command_context.ts";
import { rulesChange } from "./_rules.ts";
import { askKey, stopError } from "./_terminal.ts";

/** The names of the built-in servers, with the programs and packages that do the same. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  filesystem: ["@modelcontextprotocol/server-filesystem", "mcp-server-filesystem"],
  git: ["mcp-server-git"],
  sqlite: ["mcp-server-sqlite"],
};
/** The parts of a word around the name of a program: its folder, and its version or extension. */
const FOLDER_OR_VERSION = /^(?:\/|[A-Za-z]:\\|\.{1,2}[\\/]|~\/).*[\\/]|(?:[@=]=?[\w.^~-]+|\.exe)$/g;

/** The user's choice between imported and built-in servers. */
export interface DoubleChoice {
  /** The servers to import. */
  readonly taken: readonly ImportableServer[];
  /** The built-in servers to deny. */
  readonly denied: readonly string[];
  /** The servers that are not imported, because the user wants the built-in ones instead. */
  readonly doubles: readonly ImportableServer[];
}

/** Returns the built-in server that does the same as an imported one. */
export function doubleOf({ definition }: Pick<ImportableServer, "definition">): string | undefined {
  const { command = "", args = [] } = definition as {
    readonly command?: string;
    readonly args?: readonly string[];
  };
  // Compares whole names, because a package whose name only contains such a name does something else.
  const words = [command, ...args].map((word) => word.replace(FOLDER_OR_VERSION, ""));
  return Object.keys(PROGRAMS).find((name) =>
    PROGRAMS[name]?.some((program) => words.includes(program))
  );
}

/** Asks about each double which of the two to use. Throws `CANCELLED` if the user stops. */
export async function askDoubles(
  { signal }: CommandContext,
  taken: readonly ImportableServer[],
): Promise<DoubleChoice> {
  const doubles: ImportableServer[] = [];
  const denied: string[] = [];
  for (const server of taken) {
    const builtin = doubleOf(server);
    if (builtin === undefined || denied.includes(builtin)) continue;
    const question = `\n${quoted(server.name)} does the same as ${quoted(builtin)}, which comes ` +
      "with PML and runs in the sandbox. Which one do you want?";
    const reply = await askKey(question, {
      answers: [
        { reply: "both", key: "b", name: "both" },
        { reply: "builtin", key: "p", name: "the one of PML" },
        { reply: "imported", key: "i", name: "the imported one" },
      ],
      enterReply: "both",
      signal,
    });
    if (reply === "cancelled") throw stopError();
    if (reply === "builtin") doubles.push(server);
    if (reply === "imported") denied.push(builtin);
  }
  return { taken: taken.filter((server) => !doubles.includes(server)), denied, doubles };
}

/** Denies built-in servers in the file of the import, and returns a line about each. */
export async function denyBuiltins(
  { app }: CommandContext,
  { denied, workspace }: { readonly denied: readonly string[]; readonly workspace: boolean },
): Promise<readonly string[]> {
  if (denied.length === 0) return [];
  const rules = denied.map((name) => `${name}:*`);
  await app.policy.reload();
  const change = await rulesChange(app, { workspace, rules: [{ list: "deny", rules }] });
  if (change.diff !== "") await change.write();
  await app.policy.reload();
  return rules.map((rule) =>
    `${change.path}: the rule deny ${rule} hides the server that comes with PML; ` +
    `\`pml deny --remove '${rule}'\` shows it again`
  );
}
