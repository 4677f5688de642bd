/**
 * Finds the tools of a server whose definitions are too large to be looked at.
 *
 * @module
 */

import { isObject } from "../../core/json.ts";
import { tooLarge, tooNested } from "../../core/schema_size.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { turn } from "../../io/waiting.ts";

/** After so long a look others get their turn. */
const TURN_MS = 10;

/** Finds the tools that cannot be used for their schemas, and says why; however many there are. */
export async function unusableTools(
  tools: readonly ToolDefinition[],
): Promise<ReadonlyMap<ToolDefinition, string>> {
  const found = new Map<ToolDefinition, string>();
  const turns = new Turns();
  for (const tool of tools) {
    const why = unusable(tool);
    if (why !== undefined) found.set(tool, why);
    await turns.next();
  }
  return found;
}

/** Lets others have their turn while much is looked at. */
export class Turns {
  #since = performance.now();

  /** Resolves at once, or after others had their turn. */
  async next(): Promise<void> {
    if (performance.now() - this.#since < TURN_MS) return;
    await turn();
    this.#since = performance.now();
  }
}

function unusable(tool: ToolDefinition): string | undefined {
  const { inputSchema, outputSchema = {} } = tool;
  const large = tooLarge(tool);
  if (large !== undefined) return large;
  const why = [inputSchema, outputSchema]
    .map((schema) => isObject(schema) ? tooNested(schema) : "it is no object")
    .find((each) => each !== undefined);
  return why && `its schema cannot be used: ${why}`;
}
