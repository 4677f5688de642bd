/**
 * Decides which tools a user should not approve without reading.
 *
 * @module
 */

import { objectOf } from "../core/json.ts";
import type { ToolId } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";

/** The tool that runs any command. */
const RUNS_COMMANDS = "shell:exec";

/** Returns whether the server of a tool says that the tool can destroy something. */
export function isDestructive({ annotations }: Pick<ToolDefinition, "annotations">): boolean {
  return objectOf(annotations).destructiveHint === true;
}

/** Returns whether it could do harm if the user approved a call of a tool without reading. */
export function isRisky(id: ToolId, definition: Pick<ToolDefinition, "annotations">): boolean {
  return id === RUNS_COMMANDS || isDestructive(definition);
}
