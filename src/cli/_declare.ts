/**
 * `pml types`: writes the tools of servers as TypeScript, for a user's own programs.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { allowedTools, declarations, observedBy, typesOf } from "../app/app_workflow.ts";
import { inset } from "../core/json.ts";
import type { DeclaredServer } from "../workflow/declarations.ts";
import { type CommandContext, prepare, type Shown, type Typed } from "./_command_context.ts";
import { plainText } from "./out.ts";

const WHY_MAX = 200;

/** Shows the declarations of the servers that are named, or of all. */
export async function types(at: CommandContext, { words }: Typed): Promise<Shown> {
  const { app } = at;
  const named = [...new Set(words)];
  const servers: DeclaredServer[] = [];
  for (const name of named) {
    const offered = await (await app.finder()).offered(name);
    if (offered.length === 0) {
      await prepare(at, name);
    }
    const tools = offered.length > 0 ? offered.map(({ tool }) => tool) : allowedTools(app, name);
    servers.push({ name, tools });
  }
  if (named.length === 0) {
    await prepare(at, undefined, { isWhole: true });
    servers.push(
      ...app.servers.states().map(({ name }) => ({ name, tools: allowedTools(app, name) })),
    );
  }
  const observed = await observedBy(app);
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
      `// Written by \`${["pml types", ...named].join(" ")}\`. Write it again when tools change.`,
      "/** Tools by server. */",
      "export interface Mcp {",
      ...declarations(withTools, observed),
      "}",
    ].join("\n"),
    paint: plainText,
    note: omittedLines(app, servers).join("\n"),
  };
}

/** Returns the lines about servers that the declarations do not contain, with the reasons. */
function omittedLines(app: App, servers: readonly DeclaredServer[]): readonly string[] {
  const empty = new Set(servers.filter(({ tools }) => tools.length === 0).map(({ name }) => name));
  return app.servers.states().filter(({ name }) => empty.has(name)).map(({ name, state, why }) => {
    const reason = why === undefined ? state : inset(why, WHY_MAX);
    return `Left out: ${name} (${state === "ready" ? "no tools that you may call" : reason})`;
  });
}
