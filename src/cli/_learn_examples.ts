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

/** A tool with its effect, by its definition. */
interface JudgedTool {
  readonly own: ToolDefinition;
  readonly id: ToolId;
  readonly reads: boolean;
  readonly effect: string;
}

/** Returns an example call of the tool that reads and needs the fewest arguments. */
export async function readingCall(
  app: App,
  server: string,
  tools: readonly ToolDefinition[],
): Promise<TrialCall | undefined> {
  const calls = (await judged(app, server, tools)).filter(({ reads }) => reads)
    .map((tool) => callOf(app, tool));
  const sizeOf = (call: TrialCall) => Object.keys(call.arguments).length;
  return calls.sort((one, other) => sizeOf(one) - sizeOf(other))[0];
}

/**
 * Returns the command that makes these calls and one of a tool that was not tried, with arguments
 * that fit it: first of a tool that reads, then of others that destroy nothing. Undefined if no
 * such tool is left.
 */
export async function exampleCommand(
  app: App,
  { server, tools, calls }: {
    readonly server: string;
    readonly tools: readonly ToolDefinition[];
    readonly calls: readonly TrialCall[];
  },
): Promise<string | undefined> {
  const untried = tools.filter(({ name }) => calls.every(({ id }) => id !== toolId(server, name)));
  const harmless = (await judged(app, server, untried)).filter(isHarmless);
  // After a tool that reads, one that writes is more likely to need a grant.
  const next = harmless.find(({ reads }) => reads === (calls.length === 0)) ?? harmless[0];
  if (next === undefined) return undefined;
  const words = [...calls, callOf(app, next)]
    .flatMap((call) => [call.id, JSON.stringify(call.arguments)]);
  return ["pml learn", server, ...words].map((word, at) => at === 0 ? word : shellWord(word))
    .join(" ");
}

/** Returns whether an example may name a tool: users run examples without a second look. */
function isHarmless({ effect }: JudgedTool): boolean {
  // guard: example-harmless
  return effect !== "destroys";
}

async function judged(
  app: App,
  server: string,
  tools: readonly ToolDefinition[],
): Promise<readonly JudgedTool[]> {
  return await Promise.all(tools.map(async (own) => {
    const id = toolId(server, own.name);
    return { own, id, ...await effectOf(app, { id, own }) };
  }));
}

function callOf(app: App, { own, id, reads }: JudgedTool): TrialCall {
  const { workspace } = app.config();
  return { id, arguments: exampleArguments(own, { workspace, isNew: !reads }) };
}
