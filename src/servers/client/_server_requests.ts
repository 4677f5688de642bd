/**
 * Answers the requests of a server: PML itself answers `ping` and `roots/list`, and passes other
 * requests on to the client.
 *
 * @module
 */

import type { CallClient } from "../../protocol/call.ts";
import { messageOf, PmlError } from "../../core/errors.ts";
import { type JsonObject, quoted, visible, withoutUndefined } from "../../core/json.ts";
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
  /** Sends a progress report of the client to the server, with the progress token of the server. */
  readonly onProgress?: CallClient["onProgress"];
  readonly signal: AbortSignal;
  /** The key of the request in `inputRequests`, in the stateless revision. */
  readonly key?: string;
  /** The options of the client's request during which the server sent this one, if it is known. */
  readonly during: RequestOptions | undefined;
}

/** The server that made a request. */
export interface RequestingServer {
  readonly name: string;
  readonly host: RequestsHost;
  /** Limits the log lines about refused requests. */
  readonly refusals: LimitedLog;
}

/** The parts of the host that requests of servers need. */
interface RequestsHost extends Pick<UpstreamsHost, "roots" | "withoutSecrets" | "logServer"> {
  readonly clients: Pick<UpstreamClients, "onRequest">;
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
  const onServerRequest = clientFor(request, server);
  try {
    return await passTo(onServerRequest, request, server);
  } catch (error) {
    throw error instanceof RpcError ? clientError(error) : error;
  }
}

/** Passes a request of an extension to the client. If the request is refused, logs the reason. */
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
    throw error instanceof RpcError ? unknownRequestError(error, method) : error;
  }
}

type OnServerRequest = NonNullable<CallClient["onServerRequest"]>;

/** Returns the function that asks the client. Throws `RpcError` if no client can be asked. */
function clientFor({ method, during }: PeerRequest, server: RequestingServer): OnServerRequest {
  // A request that belongs to a client's request is never sent to another client.
  const onServerRequest = during === undefined
    ? server.host.clients.onRequest
    : during.client.onServerRequest;
  if (onServerRequest !== undefined) return onServerRequest;
  const how = method === "sampling/createMessage"
    ? "; `sampling` in config.yaml names a model to ask"
    : "";
  throw new RpcError(
    ERROR.methodNotFound,
    `no open request has a client that can be asked${how}`,
  );
}

function passTo(
  onServerRequest: OnServerRequest,
  { key, method, params, members, signal, during, onProgress }: PeerRequest,
  { name, host }: RequestingServer,
): Promise<JsonObject> {
  // The URL stays as it is: without a secret in it, it would lead to another page.
  const { url, ...rest } = params;
  return onServerRequest({
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
 * Returns an error response of the client as a `PmlError`: an `RpcError` would count as an error of
 * the server.
 */
export function clientError(error: RpcError): PmlError {
  const { code, data } = error;
  const message = error.message || "Unknown error";
  return new PmlError("BAD_REQUEST", message, {
    detail: { answered: withoutUndefined({ code, message, data }) },
    cause: error,
  });
}

/**
 * Returns the error for a server whose request of an extension failed. If the client does not know
 * the method, the message states that PML cannot pass the request on.
 */
function unknownRequestError({ code, message, data }: RpcError, method: string): RpcError {
  const text = code === ERROR.methodNotFound
    ? `PML cannot pass ${visible(method, 100)} on: ${message}`
    : message;
  return new RpcError(code, text, data);
}
