/**
 * What a server asks of the client within a call: it ends at the client, and no server runs it.
 *
 * @module
 */

import type { Call, Outcome, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";

/** Puts to the client what a server asks, and returns its answer as it is. */
export async function askedOfClient(
  { id, method, arguments: params, signal, onAsk }: Call,
): Promise<Outcome> {
  if (
    onAsk === undefined || method !== "elicitation/create" && method !== "sampling/createMessage"
  ) {
    throw new PmlError("BAD_REQUEST", `Cannot ask the client for ${quoted(id, 200)}`);
  }
  const result = await onAsk({ server: splitToolId(id).server, method, params, signal });
  return { kind: "result", result: result as unknown as ToolResult };
}
