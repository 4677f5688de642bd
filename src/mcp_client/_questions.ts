/**
 * What a server asks: whether PML is there, for its roots, and for the client.
 *
 * @module
 */

import { type JsonObject, visible } from "../core/json.ts";
import { Answered, type Asked } from "./_peer.ts";
import { NO_SUCH_METHOD } from "./_revisions.ts";

/** What answers are made of. */
export interface Answering {
  /** The server's name. */
  readonly name: string;
  /** The roots that the server may know. */
  readonly roots: () => readonly JsonObject[];
  /** Takes secrets out of what it says beside its results. */
  readonly withoutSecrets: <T>(said: T) => T;
}

/** Answers what a server asks; throws `Answered` where that is nothing for PML. */
export async function answerTo(
  { method, params, signal, during }: Asked,
  { name, roots, withoutSecrets }: Answering,
): Promise<JsonObject> {
  switch (method) {
    case "ping":
      return {};
    case "roots/list":
      return { roots: roots() };
    case "elicitation/create":
    case "sampling/createMessage":
      break;
    default:
      throw new Answered(NO_SUCH_METHOD, `PML has no ${visible(method, 100)}`);
  }
  if (during?.onAsk === undefined) {
    const how = method === "sampling/createMessage"
      ? "; `sampling` in config.yaml of the PML home names a model to ask"
      : "";
    throw new Answered(NO_SUCH_METHOD, `no request is open whose client could be asked${how}`);
  }
  const { url, ...said } = params; // an address without its key leads elsewhere
  return await during.onAsk({
    server: name,
    method,
    params: { ...withoutSecrets(said), ...(url !== undefined && { url }) },
    signal: AbortSignal.any([signal, during.signal]),
  });
}
