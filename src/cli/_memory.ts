/**
 * `pml memory`: shows the statistics that PML keeps about the use of tools, or clears them.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { counted } from "../core/amounts.ts";
import { visible } from "../core/json.ts";
import { parseId } from "./_arguments.ts";
import { subcommandOf } from "./_failure.ts";
import type { CommandContext, CommandInput, CommandOutput } from "./_command_context.ts";

/** Shows the statistics of all tools or of one, or clears them. */
export async function memory(
  { app }: CommandContext,
  { words }: CommandInput,
): Promise<CommandOutput> {
  const run = subcommandOf("memory", words, { show: [show, 0, 1], clear: [clear, 0] });
  return run(app, { memory: await app.openMemory(), name: words[1] });
}

interface MemoryQuery {
  readonly memory: Awaited<ReturnType<App["openMemory"]>>;
  /** The tool to show; undefined for all tools. */
  readonly name: string | undefined;
}

function clear(_: App, { memory }: MemoryQuery): CommandOutput {
  memory.clear();
  return { value: { cleared: true }, text: "", note: "The memory of tool use is empty now" };
}

function show(app: App, { memory, name }: MemoryQuery): CommandOutput {
  const enabled = app.config().memory;
  const tool = name === undefined ? undefined : parseId(name, app.servers);
  const tools = memory.recentUses().filter(({ id }) => tool === undefined || id === tool);
  return {
    value: { enabled, path: memory.path, tools },
    text: tools.map(lineOf).join("\n"),
    note: !enabled
      ? "The memory is switched off in config.yaml"
      : tools.length > 0
      ? ""
      : `Nothing is remembered${name === undefined ? "" : ` of ${visible(name)}`} yet`,
  };
}

type ShownUse = ReturnType<MemoryQuery["memory"]["recentUses"]>[number];

/** Returns the lines of one tool. Names come from servers, so they are made visible. */
function lineOf({ id, calls, errors, median_ms, p95_ms, result, next }: ShownUse): string {
  const failed = errors === 0 ? "" : `, ${errors} failed`;
  const times = `${median_ms} ms, p95 ${p95_ms} ms`;
  const shape = result === undefined ? [] : [`  returns ${visible(JSON.stringify(result), 400)}`];
  const names = Object.keys(next).slice(0, 3).map((tool) => visible(tool, 100));
  return [
    `${visible(id, 200).padEnd(40)} ${counted(calls, "call")}${failed}, ${times}`,
    ...shape,
    ...(names.length > 0 ? [`  then ${names.join(", ")}`] : []),
  ].join("\n");
}
