/**
 * The client of calls on a terminal. Requests of servers pass the rules as any call does.
 *
 * @module
 */

import type { CallClient, ServerRequest } from "../protocol/call.ts";
import type { JsonObject } from "../core/json.ts";
import { serverInput } from "../gateway/interaction/server_input.ts";
import type { App } from "../app/app.ts";

/**
 * Returns the client of a call on a terminal. `put` asks the user, and `able` has the capabilities
 * of a client.
 */
export async function terminalClient(
  app: App,
  { able, put }: {
    readonly able: JsonObject;
    readonly put: (
      request: Pick<ServerRequest, "params" | "signal">,
    ) => Promise<JsonObject>;
  },
): Promise<Pick<CallClient, "able" | "onAsk">> {
  // The questions of PML itself have their own way to the terminal.
  const path = await app.callPath();
  app.servers.lists.serve(able);
  return {
    able,
    onAsk: serverInput({ requestInput: put, capabilities: able }, path.callTool, path),
  };
}
