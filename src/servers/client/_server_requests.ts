/**
 * Answers requests of a server: `ping`, `roots/list`, and requests for the client.
 *
 * @module
 */

import type { CallClient } from "../../protocol/call.ts";
import { messageOf, PmlError } from "../../core/errors.ts";
import { defined, type JsonObject, quoted, visible } from "../../core/json.ts";
import type { LimitedLog } from "../../io/limited_log.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import type { UpstreamClients } from "./upstream_clients.ts";
import type { UpstreamsHost } from "./upstreams_host.ts";
import type { RequestOptions } from "../../protocol/rpc_peer.ts";

/** A request of a server. */
export interface PeerRequest {
  readonly method: string;
  readonly params: JsonObject;
  /** The members next to `method` and `params` that JSON-RPC does not define. */
  readonly members?: JsonObject | undefined;
  /** Sends the progress of the client to the server, with the token of the server. */
  readonly onProgress?: CallClient["onProgress"];
  readonly signal: AbortSignal;
  /** The server's own name of the request, in the stateless revision. */
  readonly key?: string;
  /** The client's request that it belongs to, if that is known. */
  readonly during: RequestOptions | undefined;
}

/** The server that made a request. */
export interface RequestingServer {
  readonly name: string;
  readonly host: RequestsHost;
  /** Limits the lines about requests that are refused. */
  readonly refusals: LimitedLog;
}

/** The parts of the host that requests of servers need. */
interface RequestsHost extends Pick<UpstreamsHost, "roots" | "withoutSecrets" | "logServer"> {
  readonly clients: Pick<UpstreamClients, "asked">;
}

/** Answers a request of a server. Throws `RpcError` if neither PML nor the client supports it. */
export async function answerRequest(
  request: PeerRequest,
  server: RequestingServer,
): Promise<JsonObject> {
  switch (request.method) {
    case "ping":
      return {};
    case "roots/list":
      return { roots: await server.host.roots(server.name) };
    case "elicitation/create":
    case "sampling/createMessage":
      return await passQuestion(request, server);
    default:
      return await passUnknown(request, server);
  }
}

async function passQuestion(request: PeerRequest, server: RequestingServer): Promise<JsonObject> {
  const onAsk = clientFor(request, server);
  try {
    return await passTo(onAsk, request, server);
  } catch (error) {
    throw error instanceof RpcError ? refusedByClient(error) : error;
  }
}

/** Passes a request of an extension to the client. Logs why one is refused. */
async function passUnknown(request: PeerRequest, server: RequestingServer): Promise<JsonObject> {
  try {
    return await passTo(clientFor(request, server), request, server);
  } catch (error) {
    const { method } = request;
    const why = messageOf(error);
    const text = `Its request ${quoted(method, 100)} was refused: ${why}`;
    const key = JSON.stringify([method.slice(0, 200), why]);
    const { name, host, refusals } = server;
    refusals.write(key, text, (line) => host.logServer(name, "warn", line));
    throw error instanceof RpcError ? refusedUnknown(error, method) : error;
  }
}

type OnAsk = NonNullable<CallClient["onAsk"]>;

/** Returns the function that asks the client. Throws `RpcError` if no client can be asked. */
function clientFor({ method, during }: PeerRequest, server: RequestingServer): OnAsk {
  // A request whose own client cannot be asked has no other that can.
  const onAsk = during === undefined ? server.host.clients.asked : during.client.onAsk;
  if (onAsk !== undefined) return onAsk;
  const how = method === "sampling/createMessage"
    ? "; `sampling` in config.yaml names a model to ask"
    : "";
  throw new RpcError(
    ERROR.methodNotFound,
    `no open request has a client that can be asked${how}`,
  );
}

function passTo(
  onAsk: OnAsk,
  { key, method, params, members, signal, during, onProgress }: PeerRequest,
  { name, host }: RequestingServer,
): Promise<JsonObject> {
  const { url, ...rest } = params; // a URL without its key would lead to another page
  return onAsk({
    server: name,
    key,
    method,
    params: { ...host.withoutSecrets(rest), ...(url !== undefined && { url }) },
    onProgress,
    ...members && { members: host.withoutSecrets(members) },
    signal: during === undefined ? signal : AbortSignal.any([signal, during.cancellation.signal]),
  });
}

/**
 * Returns an error response of the client as a `PmlError`. An `RpcError` would count as the
 * server's.
 */
export function refusedByClient(error: RpcError): PmlError {
  const { code, data } = error;
  const message = error.message || "Unknown error";
  return new PmlError("BAD_REQUEST", message, {
    detail: { answered: defined({ code, message, data }) },
    cause: error,
  });
}

/** Returns the error of the client, or of PML for a client without the extension, as the server's. */
function refusedUnknown({ code, message, data }: RpcError, method: string): RpcError {
  const text = code === ERROR.methodNotFound
    ? `PML cannot pass ${visible(method, 100)} on: ${message}`
    : message;
  return new RpcError(code, text, data);
}
