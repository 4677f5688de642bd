/**
 * Finds tools whose definitions cannot be used: they are too large, or their schemas are too nested
 * or not objects.
 *
 * @module
 */

import { isObject } from "../../core/json.ts";
import { whyTooLarge, whyTooNested } from "../../core/schema_size.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { yieldTurn } from "../../io/waiting.ts";

/** After this time, in milliseconds, a check yields to other work. */
const TURN_MS = 10;

/** Returns the tools that cannot be used, with the reasons. Yields to other work in between. */
export async function unusableTools(
  tools: readonly ToolDefinition[],
): Promise<ReadonlyMap<ToolDefinition, string>> {
  const problems = new Map<ToolDefinition, string>();
  const turns = new CheckPauses();
  for (const tool of tools) {
    const why = problemOf(tool);
    if (why !== undefined) problems.set(tool, why);
    await turns.next();
  }
  return problems;
}

/** Yields to other work during long checks. */
export class CheckPauses {
  #since = performance.now();

  /** Resolves at once, or after other work had its turn. */
  async next(): Promise<void> {
    if (performance.now() - this.#since < TURN_MS) return;
    await yieldTurn();
    this.#since = performance.now();
  }
}

function problemOf(tool: ToolDefinition): string | undefined {
  const { inputSchema, outputSchema = {} } = tool;
  const large = whyTooLarge(tool);
  if (large !== undefined) return large;
  const why = [inputSchema, outputSchema]
    .map((schema) => isObject(schema) ? whyTooNested(schema) : "it is not an object")
    .find((problem) => problem !== undefined);
  return why && `its schema cannot be used: ${why}`;
}
