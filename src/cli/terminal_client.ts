/**
 * The ways from a call to the person at a terminal: what a server asks is judged as any call is.
 *
 * @module
 */

import type { CallClient, ServerRequest } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import { serverInput } from "../gateway/interaction/server_input.ts";
import type { App } from "../app/app.ts";

/**
 * Returns what a call has instead of a client. `put` asks the person, and `able` says in the words
 * of MCP what it can ask.
 */
export async function terminalWays(
  app: App,
  { able, put }: {
    readonly able: JsonObject;
    readonly put: (
      asked: Pick<ServerRequest, "params" | "signal">,
    ) => Promise<JsonObject>;
  },
): Promise<Pick<CallClient, "able" | "onAsk">> {
  // The questions of PML itself have their own way to the terminal.
  const { callTool, leave } = await app.callPath();
  app.servers.lists.serve(able);
  return { able, onAsk: serverInput({ callTool, leave, requestInput: put, capabilities: able }) };
}
