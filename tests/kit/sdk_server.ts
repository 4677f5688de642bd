/**
 * The SDK's server in front of a connection of PML, for comparisons with PML's own answers.
 *
 * @module
 */

import { Server, type ServerContext } from "@modelcontextprotocol/server";
import { Cancellation } from "../../src/core/cancellation.ts";
import { type JsonObject, objectOf } from "../../src/core/json.ts";
import { ANY } from "./any_schema.ts";
import type { Connection, RequestContext } from "../../src/protocol/connection.ts";
import type { Hello } from "../../src/protocol/connection.ts";

/**
 * The methods that the SDK reads as tasks of an older revision, unless a schema is registered for
 * them.
 */
const REUSED = ["tasks/get", "tasks/cancel"];

/** Creates the server. `open` returns the connection that gets its requests. */
export function sdkServer(
  { serverInfo, ...hello }: Hello,
  { open, onError }: {
    readonly open: (server: Server) => Connection;
    readonly onError: (error: Error) => void;
  },
): Server {
  const server = new Server(serverInfo, {
    ...hello,
    debouncedNotificationMethods: ["tools", "resources", "prompts"]
      .map((list) => `notifications/${list}/list_changed`),
  });
  const connection = open(server);
  server.onerror = onError;
  server.onclose = () => connection.close();
  server.removeRequestHandler("logging/setLevel");
  // A handler for one method loses the fields that the SDK does not know.
  const serve = async (params: unknown, context: ServerContext) => {
    using cancellation = Cancellation.of(context.mcpReq.signal);
    return await connection.serve(params, contextOf(context, cancellation));
  };
  server.fallbackRequestHandler = ({ params }, context) => serve(params, context);
  if (!connection.isStateless) return server;
  for (const method of REUSED) server.setRequestHandler(method, { params: ANY }, serve);
  return server;
}

/** Returns the context of a request for the gateway. */
function contextOf({ mcpReq, http }: ServerContext, cancellation: Cancellation): RequestContext {
  const { id, method, _meta, envelope, inputResponses, requestState } = mcpReq;
  return {
    since: performance.now(),
    ...{ id, idText: JSON.stringify(id), method, cancellation },
    meta: _meta as JsonObject | undefined,
    envelope: envelope as JsonObject | undefined,
    inputResponses: inputResponses && objectOf(inputResponses),
    requestState: requestState<unknown>(),
    headers: http?.req?.headers,
    members: undefined,
    takesMembers: false,
    answerWith() {},
    ask: async (method, params, { signal, ms }) => {
      const options = { signal, timeout: ms };
      return await mcpReq.send({ method, params }, ANY, options) as JsonObject;
    },
    notify: async ({ method, params }) => {
      await mcpReq.notify({ method, params: params as never });
    },
  };
}
