/**
 * The SDK's server for one connection. It is loaded, with the SDK, where a client asks what PML does
 * not serve without it.
 *
 * @module
 */

import { Server, type ServerContext } from "@modelcontextprotocol/server";
import { ANY } from "./asking.ts";
import type { Connection } from "./connection.ts";
import type { Hello } from "./hello.ts";

/** What the SDK takes for the tasks of an older revision, unless it is told how to read it. */
const REUSED = ["tasks/get", "tasks/cancel"];

/** Makes the server. `open` returns the connection whose requests it passes on. */
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
  // What is registered by its method loses the fields that the SDK does not know.
  const serve = (params: unknown, context: ServerContext) => connection.serve(params, context);
  server.fallbackRequestHandler = ({ params }, context) => serve(params, context);
  if (!connection.isModern) return server;
  for (const method of REUSED) server.setRequestHandler(method, { params: ANY }, serve);
  return server;
}
