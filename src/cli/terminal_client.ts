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
 * Returns the client of a call on a terminal. `askUser` asks the user, and `capabilities` are those
 * of a client.
 */
export async function terminalClient(
  app: App,
  { capabilities, askUser }: {
    readonly capabilities: JsonObject;
    readonly askUser: (
      request: Pick<ServerRequest, "params" | "signal">,
    ) => Promise<JsonObject>;
  },
): Promise<Pick<CallClient, "capabilities" | "onServerRequest">> {
  // This client is for requests of servers; PML's own questions reach the terminal in another way.
  const callPath = await app.callPath();
  app.servers.lists.setCapabilities(capabilities);
  return {
    capabilities,
    onServerRequest: serverInput(
      { requestInput: askUser, capabilities },
      callPath.callTool,
      callPath,
    ),
  };
}
