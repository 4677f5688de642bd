/**
 * Sends requests and notifications of servers to the client of a call.
 *
 * @module
 */

import type { Call, Outcome, ToolResult } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";

/** The method with which a server asks the client's model. */
export const SAMPLING_METHOD = "sampling/createMessage";

/** The facts for the approval of a request that sends text of a server to the client's model. */
const SAMPLING_FACTS = [
  "It sends this text to the model of your client, and gets the answer",
  "The client may count or charge it as a request of yours",
];

/** Returns the lines of the approval request that are about the request and not about its server. */
export function requestFacts({ facts, method, via }: Call): readonly string[] {
  if (facts !== undefined) return facts;
  if (method === SAMPLING_METHOD) return SAMPLING_FACTS;
  return via === "server" && method !== "elicitation/create" ? UNKNOWN_METHOD_FACTS : [];
}

/** The fact for the approval of a request with a method that PML does not know. */
const UNKNOWN_METHOD_FACTS = ["The server sends this request to your client, and gets its answer"];

/** Sends a request or notification of a server to the client, and returns its answer unchanged. */
export async function sendToClient(call: Call): Promise<Outcome> {
  const { id, method, isNotification, arguments: params, cancellation: { signal } } = call;
  const { client: { onServerRequest, onNotify } } = call;
  const members = call.members?.message;
  if (isNotification === true && method !== undefined) {
    if (onNotify?.({ method, params, members }) !== true) {
      throw new PmlError("CANCELLED", `Cannot notify the client: it waits no longer`);
    }
    return { kind: "result", result: { content: [] } };
  }
  if (onServerRequest === undefined || method === undefined) {
    throw new PmlError("BAD_REQUEST", `Cannot ask the client for ${quoted(id, 200)}`);
  }
  const { server } = splitToolId(id);
  const result = await onServerRequest({ server, method, params, members, signal });
  return { kind: "result", result: result as unknown as ToolResult };
}
