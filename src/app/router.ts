/**
 * Sends each call to where its server runs, this machine or the cloud, and what a server asks to the
 * client.
 *
 * @module
 */

import type { Call, CallTool, Outcome, ToolResult } from "../core/call.ts";
import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import { splitToolId } from "../core/tool_id.ts";

/** Where a server runs: here, or behind PML's cloud. */
export type Route = "local" | "cloud";

/** What a router needs. */
export interface RouterOptions extends Readonly<Record<Route, CallTool>> {
  /** Tells where a server runs; what the person defined and built-ins are local by their origin, not by their name. */
  readonly routingOf: (server: string) => Route;
}

/** Passes calls on. */
export interface Router {
  readonly call: CallTool;
}

/** Makes a router that asks once a call where its server runs. */
export function makeRouter(options: RouterOptions): Router {
  return {
    call: (call) => {
      if (call.via === "server") return askClient(call);
      return options[options.routingOf(splitToolId(call.id).server)](call);
    },
  };
}

/** Puts to the client what a server asks within a call, and hands its answer on as it is. */
async function askClient({ id, method, arguments: params, signal, onAsk }: Call): Promise<Outcome> {
  if (
    onAsk === undefined || method !== "elicitation/create" && method !== "sampling/createMessage"
  ) {
    throw new PmlError("BAD_REQUEST", `Cannot ask the client for ${quoted(id, 200)}`);
  }
  const result = await onAsk({ server: splitToolId(id).server, method, params, signal });
  return { kind: "result", result: result as unknown as ToolResult };
}
