/**
 * `pml memory`: shows what is remembered of the use of tools, or forgets it.
 *
 * @module
 */

import { counted } from "../core/amounts.ts";
import { visible } from "../core/json.ts";
import { parseId } from "./_arguments.ts";
import { unknownWords } from "./_failure.ts";
import type { CommandContext, Shown, Typed } from "./_command_context.ts";

/** Shows the memory, of all tools or of one, or clears it. */
export async function memory({ app }: CommandContext, { words }: Typed): Promise<Shown> {
  const [what, name, ...more] = words;
  const isKnown = what === "show" || what === "clear" && name === undefined;
  if (!isKnown || more.length > 0) {
    throw unknownWords("memory", { words, known: ["show", "clear"] });
  }
  const memory = await app.memory();
  if (what === "clear") {
    memory.clear();
    return { value: { cleared: true }, text: "", note: "Nothing is remembered of tools any more" };
  }
  const enabled = app.config().memory;
  const only = name === undefined ? undefined : parseId(name, app.servers);
  const tools = memory.shown().filter(({ id }) => only === undefined || id === only);
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

type ShownUse = ReturnType<Awaited<ReturnType<CommandContext["app"]["memory"]>>["shown"]>[number];

/** Returns the lines of one tool. Names come from servers, so they are made visible. */
function lineOf({ id, calls, errors, median_ms, p95_ms, result, next }: ShownUse): string {
  const failed = errors === 0 ? "" : `, ${errors} failed`;
  const times = `${median_ms} ms, p95 ${p95_ms} ms`;
  const shape = result === undefined ? [] : [`  returns ${visible(JSON.stringify(result), 400)}`];
  const names = Object.keys(next).slice(0, 3).map((one) => visible(one, 100));
  return [
    `${visible(id, 200).padEnd(40)} ${counted(calls, "call")}${failed}, ${times}`,
    ...shape,
    ...(names.length > 0 ? [`  then ${names.join(", ")}`] : []),
  ].join("\n");
}
