/**
 * Example calls for `pml learn`: one that reads, to try now, and one for a tool that was not tried.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { JsonObject } from "../core/json.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { effectOf } from "./_server_table.ts";
import { shellWord } from "./_shell_word.ts";
import { exampleArguments } from "./_tool_page.ts";

/** A call to try. */
export interface TrialCall {
  readonly id: ToolId;
  arguments: JsonObject;
}

/** Returns an example call of the tool that reads and needs the fewest arguments. */
export async function readingCall(
  app: App,
  server: string,
  tools: readonly ToolDefinition[],
): Promise<TrialCall | undefined> {
  const { workspace } = app.config();
  const all = await Promise.all(tools.map(async (own) => {
    const id = toolId(server, own.name);
    const { reads } = await effectOf(app, { id, own });
    return reads ? [{ id, arguments: exampleArguments(own, workspace) }] : [];
  }));
  const sizeOf = (call: TrialCall) => Object.keys(call.arguments).length;
  return all.flat().sort((one, other) => sizeOf(one) - sizeOf(other))[0];
}

/**
 * Returns the command that makes these calls and one of a tool that was not tried, with arguments
 * that fit it; undefined if all were tried.
 */
export function exampleCommand(
  app: App,
  { server, tools, calls }: {
    readonly server: string;
    readonly tools: readonly ToolDefinition[];
    readonly calls: readonly TrialCall[];
  },
): string | undefined {
  const next = tools.find(({ name }) => calls.every(({ id }) => id !== toolId(server, name)));
  if (next === undefined) return undefined;
  const args = exampleArguments(next, app.config().workspace);
  const words = [...calls, { id: toolId(server, next.name), arguments: args }]
    .flatMap((call) => [call.id, JSON.stringify(call.arguments)]);
  return ["pml learn", server, ...words].map((word, at) => at === 0 ? word : shellWord(word))
    .join(" ");
}
