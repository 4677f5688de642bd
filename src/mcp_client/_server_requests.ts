/**
 * Answers requests of a server: `ping`, `roots/list`, and requests for the client.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { defined, type JsonObject, visible } from "../core/json.ts";
import { ERROR, RpcError } from "../protocol/errors.ts";
import type { UpstreamEvents } from "./upstream_events.ts";
import type { RequestOptions } from "../protocol/rpc_peer.ts";

/** A request of a server. */
export interface PeerRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly signal: AbortSignal;
  /** The server's own name of the request, in the newest revision. */
  readonly key?: string;
  /** The client's request that it belongs to, if that is known. */
  readonly during: RequestOptions | undefined;
}

/** The options of `answerRequest`. */
export interface AnswerOptions {
  /** The name of the server. */
  readonly name: string;
  /** Returns the roots that the server may see. */
  readonly roots: () => Promise<readonly JsonObject[]>;
  /** Passes a question of the server to the client while no request is under way. */
  readonly onAsk?: UpstreamEvents["asked"];
  /** Removes secrets from a message of the server that is not a result. */
  readonly withoutSecrets: <T>(message: T) => T;
}

/** Answers a request of a server. Throws `RpcError` if PML does not support it. */
export async function answerRequest(
  { key, method, params, signal, during }: PeerRequest,
  { name, roots, onAsk: onAskOutside, withoutSecrets }: AnswerOptions,
): Promise<JsonObject> {
  switch (method) {
    case "ping":
      return {};
    case "roots/list":
      return { roots: await roots() };
    case "elicitation/create":
    case "sampling/createMessage":
      break;
    default:
      throw new RpcError(ERROR.methodNotFound, `PML does not support ${visible(method, 100)}`);
  }
  // A request whose own client cannot be asked has no other that can.
  const onAsk = during === undefined ? onAskOutside : during.client.onAsk;
  if (onAsk === undefined) {
    const how = method === "sampling/createMessage"
      ? "; `sampling` in config.yaml names a model to ask"
      : "";
    throw new RpcError(
      ERROR.methodNotFound,
      `no open request has a client that can be asked${how}`,
    );
  }
  const { url, ...rest } = params; // a URL without its key would lead to another page
  try {
    return await onAsk({
      server: name,
      key,
      method,
      params: { ...withoutSecrets(rest), ...(url !== undefined && { url }) },
      signal: during === undefined ? signal : AbortSignal.any([signal, during.cancellation.signal]),
    });
  } catch (error) {
    throw error instanceof RpcError ? refusedByClient(error) : error;
  }
}

/** Returns an error response of the client as a `PmlError`. An `RpcError` would count as the server's. */
function refusedByClient(error: RpcError): PmlError {
  const { code, data } = error;
  const message = error.message || "Unknown error";
  return new PmlError("BAD_REQUEST", message, {
    detail: { answered: defined({ code, message, data }) },
    cause: error,
  });
}
