/**
 * `pml types`: prints the types of the tools of servers as TypeScript, for a user's own programs.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { allowedTools, declarations, typesOf } from "../app/app_workflow.ts";
import { indentLines } from "../core/json.ts";
import type { DeclaredServer } from "../workflow/declarations.ts";
import {
  type CommandContext,
  type CommandInput,
  type CommandOutput,
  prepare,
} from "./_command_context.ts";
import { plainText } from "./out.ts";

/** The maximum length of the reason why a server is left out. */
const REASON_MAX = 200;

/** Shows the declarations of the named servers, or of all servers. */
export async function types(
  context: CommandContext,
  { words }: CommandInput,
): Promise<CommandOutput> {
  const { app } = context;
  const serverNames = [...new Set(words)];
  const servers: DeclaredServer[] = [];
  for (const name of serverNames) {
    const offered = await (await app.finder()).offeredTools(name);
    if (offered.length === 0) {
      await prepare(context, name);
    }
    const tools = offered.length > 0 ? offered.map(({ tool }) => tool) : allowedTools(app, name);
    servers.push({ name, tools });
  }
  if (serverNames.length === 0) {
    await prepare(context, undefined, { waitsForAll: true });
    servers.push(
      ...app.servers.states().map(({ name }) => ({ name, tools: allowedTools(app, name) })),
    );
  }
  const observed = await app.observedOutput();
  const withTools = servers.filter(({ tools }) => tools.length > 0);
  return {
    value: {
      servers: withTools.map(({ name, tools }) => ({
        name,
        tools: tools.map((tool) => ({
          name: tool.name,
          ...typesOf(tool, { server: name, observed }),
        })),
      })),
    },
    text: [
      `// Written by \`${
        ["pml types", ...serverNames].join(" ")
      }\`. Write it again when tools change.`,
      "/** Tools by server. */",
      "export interface Mcp {",
      declarations(withTools, observed) ?? [],
      "}",
    ].flat().join("\n"),
    paint: plainText,
    note: omittedLines(app, servers).join("\n"),
  };
}

/** Returns the lines about servers that the declarations do not contain, with the reasons. */
function omittedLines(app: App, servers: readonly DeclaredServer[]): readonly string[] {
  const empty = new Set(servers.filter(({ tools }) => tools.length === 0).map(({ name }) => name));
  return app.servers.states().filter(({ name }) => empty.has(name)).map(({ name, state, why }) => {
    const reason = why === undefined ? state : indentLines(why, REASON_MAX);
    return `Left out: ${name} (${state === "ready" ? "no tools that you may call" : reason})`;
  });
}
