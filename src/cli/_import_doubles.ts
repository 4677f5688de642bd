/**
 * Finds imported servers that do the same as a built-in server of PML, and offers to leave one out.
 *
 * @module
 */

import type { ImportableServer } from "../config/client_servers.ts";
import { quoted } from "../core/json.ts";
import type { CommandContext } from "./_command_context.ts";
import { rulesChange } from "./_rules.ts";
import { askKey } from "./_terminal.ts";

/** The programs and packages that do the same as a built-in server. */
const PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  filesystem: ["@modelcontextprotocol/server-filesystem", "mcp-server-filesystem"],
  git: ["mcp-server-git"],
  sqlite: ["mcp-server-sqlite"],
};
/** The folder of a program, and the version or the extension at the end. */
const AROUND = /^(?:\/|[A-Za-z]:\\|\.{1,2}[\\/]|~\/).*[\\/]|(?:[@=]=?[\w.^~-]+|\.exe)$/g;

/** The servers to import, and the built-in ones to leave out. */
export interface DoubleChoice {
  readonly taken: readonly ImportableServer[];
  readonly denied: readonly string[];
  /** The servers in whose place the user wants the built-in ones. */
  readonly doubles: readonly ImportableServer[];
}

/** Returns the built-in server that does the same as an imported one. */
export function doubleOf({ definition }: Pick<ImportableServer, "definition">): string | undefined {
  const { command = "", args = [] } = definition as {
    readonly command?: string;
    readonly args?: readonly string[];
  };
  // Another package whose name contains one of these does something else.
  const words = [command, ...args].map((word) => word.replace(AROUND, ""));
  return Object.keys(PROGRAMS).find((name) => PROGRAMS[name]?.some((one) => words.includes(one)));
}

/** Asks for each double which one to leave out. Returns undefined if the user stops. */
export async function askDoubles(
  { signal }: CommandContext,
  taken: readonly ImportableServer[],
): Promise<DoubleChoice | undefined> {
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
        { reply: "builtin", key: "p", name: "that of PML" },
        { reply: "imported", key: "i", name: "the imported one" },
      ],
      otherwise: "both",
      signal,
    });
    if (reply === "cancelled") return undefined;
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
    `${change.path}: the rule deny ${rule} leaves it out; \`pml deny --remove '${rule}'\` brings it back`
  );
}
