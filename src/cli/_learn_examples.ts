/**
 * Example calls for `pml learn`: a call that only reads, to try at once, and a call of a tool that was
 * not tried.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { type JsonObject, quoted, textOf } from "../core/json.ts";
import { type ToolId, toolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { findEffect } from "./_server_table.ts";
import { shellWord } from "./_shell_word.ts";
import { exampleArguments } from "./_tool_page.ts";

/** A call to try. */
export interface TrialCall {
  readonly id: ToolId;
  arguments: JsonObject;
}

/** A tool, and its effect according to its definition. */
interface ToolEffect {
  readonly own: ToolDefinition;
  readonly id: ToolId;
  readonly reads: boolean;
  readonly effect: string;
}

/** Returns an example call of the tool that only reads and needs the fewest arguments. */
export async function findReadingCall(
  app: App,
  server: string,
  tools: readonly ToolDefinition[],
): Promise<TrialCall | undefined> {
  const calls = (await readEffects(app, server, tools)).filter(({ reads }) => reads)
    .map((tool) => callOf(app, tool));
  const sizeOf = (call: TrialCall) => Object.keys(call.arguments).length;
  const [smallest] = calls.sort((one, other) => sizeOf(one) - sizeOf(other));
  return smallest;
}

/** A command line that tries a tool. */
export interface Example {
  readonly command: string;
  /** A text about the effect of the tool that was not tried. */
  readonly effect: string;
  /** The tools that were not tried and do more than read. */
  readonly writing: readonly ToolId[];
}

/**
 * Returns the command that repeats these calls and calls a tool that was not tried. The tool must not
 * destroy anything; undefined if no such tool remains. Prefers a tool that writes, because such tools
 * need more grants.
 */
export async function findExample(
  app: App,
  { server, tools, calls }: {
    readonly server: string;
    readonly tools: readonly ToolDefinition[];
    readonly calls: readonly TrialCall[];
  },
): Promise<Example | undefined> {
  const untried = tools.filter(({ name }) => calls.every(({ id }) => id !== toolId(server, name)));
  const all = await readEffects(app, server, untried);
  const harmless = all.filter(isHarmless);
  const next = harmless.find(({ reads }) => !reads) ?? harmless[0];
  if (next === undefined) return undefined;
  const words = [...calls, callOf(app, next)]
    .flatMap((call) => [call.id, JSON.stringify(call.arguments)]);
  const command = ["pml learn", server, ...words]
    .map((word, index) => index === 0 ? word : shellWord(word)).join(" ");
  const [line = ""] = textOf(next.own.description).trim().split("\n", 1);
  const about = line === "" ? "" : `. Its server describes it as ${quoted(line, 200)}`;
  const writing = all.filter(({ reads }) => !reads).map(({ id }) => id);
  return { command, effect: `${next.id} ${EFFECTS[next.effect] ?? "may write"}${about}`, writing };
}

/** The texts about the effects of tools. */
const EFFECTS: Readonly<Record<string, string>> = { reads: "only reads", writes: "writes" };

/** Returns whether an example may call a tool. Users run examples without checking them. */
function isHarmless({ effect }: ToolEffect): boolean {
  // guard: example-harmless
  return effect !== "destroys";
}

async function readEffects(
  app: App,
  server: string,
  tools: readonly ToolDefinition[],
): Promise<readonly ToolEffect[]> {
  return await Promise.all(tools.map(async (own) => {
    const id = toolId(server, own.name);
    return { own, id, ...await findEffect(app, { id, own }) };
  }));
}

function callOf(app: App, { own, id, reads }: ToolEffect): TrialCall {
  const { workspace } = app.config();
  return { id, arguments: exampleArguments(own, { workspace, isNew: !reads }) };
}
