/**
 * Finds the tools of a server whose definitions are too large to be checked.
 *
 * @module
 */

import { isObject } from "../../core/json.ts";
import { tooNested, whyTooLarge } from "../../core/schema_size.ts";
import type { ToolDefinition } from "../../protocol/tool.ts";
import { yieldTurn } from "../../io/waiting.ts";

/** After this time in milliseconds a check yields to other work. */
const TURN_MS = 10;

/** Returns the tools whose schemas cannot be used, with the reasons. Yields if there are many. */
export async function unusableTools(
  tools: readonly ToolDefinition[],
): Promise<ReadonlyMap<ToolDefinition, string>> {
  const problems = new Map<ToolDefinition, string>();
  const turns = new CheckPauses();
  for (const tool of tools) {
    const why = unusable(tool);
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

function unusable(tool: ToolDefinition): string | undefined {
  const { inputSchema, outputSchema = {} } = tool;
  const large = whyTooLarge(tool);
  if (large !== undefined) return large;
  const why = [inputSchema, outputSchema]
    .map((schema) => isObject(schema) ? tooNested(schema) : "it is no object")
    .find((each) => each !== undefined);
  return why && `its schema cannot be used: ${why}`;
}
