/**
 * Answers requests of a server: `ping`, `roots/list`, and requests for the client.
 *
 * @module
 */

import { type JsonObject, visible } from "../core/json.ts";
import type { UpstreamEvents } from "./upstream_events.ts";
import { ErrorResponse, type PeerRequest } from "./_peer.ts";
import { NO_SUCH_METHOD } from "./_revisions.ts";

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

/** Answers a request of a server. Throws `ErrorResponse` if PML does not support it. */
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
      throw new ErrorResponse(NO_SUCH_METHOD, `PML does not support ${visible(method, 100)}`);
  }
  // A request whose own client cannot be asked has no other that can.
  const onAsk = during === undefined ? onAskOutside : during.client.onAsk;
  if (onAsk === undefined) {
    const how = method === "sampling/createMessage"
      ? "; `sampling` in config.yaml names a model to ask"
      : "";
    throw new ErrorResponse(NO_SUCH_METHOD, `no open request has a client that can be asked${how}`);
  }
  const { url, ...rest } = params; // a URL without its key would lead to another page
  return await onAsk({
    server: name,
    key,
    method,
    params: { ...withoutSecrets(rest), ...(url !== undefined && { url }) },
    signal: during === undefined ? signal : AbortSignal.any([signal, during.cancellation.signal]),
  });
}
