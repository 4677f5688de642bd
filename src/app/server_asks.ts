/**
 * What a server asks while it works on a call: the client answers it, or the model of a provider
 * that the person chose.
 *
 * @module
 */

import {
  type Call,
  type CallClient,
  changedClient,
  type Outcome,
  type ToolResult,
} from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import { ownProgress } from "../protocol/progress.ts";
import { splitToolId } from "../core/tool_id.ts";
import type { Sampler } from "./sampler.ts";

const SAMPLING = "sampling/createMessage";

/** What the person has to know before a server's text goes to the client's model. */
const GIVES = [
  "It gives this text to the model of your client, and gets the answer",
  "The client may count or charge it as a request of yours",
];

/** Returns what a person must know before a call, beside what its server says. */
export function factsOf({ facts, method, via }: Call): readonly string[] {
  if (facts !== undefined) return facts;
  if (method === SAMPLING) return GIVES;
  return via === "server" && method !== "elicitation/create" ? PASSES : [];
}

/** The fact for the approval of a request with a method that PML does not know. */
const PASSES = ["The server sends this request to your client, and gets its answer"];

/** Puts to the client what a server asks, and returns its answer as it is. */
export async function askedOfClient(call: Call): Promise<Outcome> {
  const { id, method, isNotification, arguments: params, cancellation: { signal } } = call;
  const { client: { onAsk, onNotify } } = call;
  if (isNotification === true && method !== undefined) {
    if (onNotify?.({ method, params }) !== true) {
      throw new PmlError("CANCELLED", `Cannot notify the client: it waits no longer`);
    }
    return { kind: "result", result: { content: [] } };
  }
  if (onAsk === undefined || method === undefined) {
    throw new PmlError("BAD_REQUEST", `Cannot ask the client for ${quoted(id, 200)}`);
  }
  const result = await onAsk({ server: splitToolId(id).server, method, params, signal });
  return { kind: "result", result: result as unknown as ToolResult };
}

/**
 * Returns the client of a call with a provider that answers sampling requests of the server, except
 * for those that the client itself answers.
 */
export function samplingClient(
  call: Call,
  client: CallClient,
  open: () => Promise<Sampler>,
): CallClient {
  const { onAsk, onProgress, sampling } = client;
  const onSampled = (message: string) => onProgress?.(ownProgress("working", message));
  return changedClient(client, {
    onAsk: async (asked) => {
      if (asked.method !== SAMPLING) {
        if (onAsk !== undefined) return await onAsk(asked);
        const what = `Cannot ask the person for ${quoted(asked.server)}: no client is there`;
        throw new PmlError("BAD_REQUEST", what, { hint: "Call the tool from a client that asks" });
      }
      const sampler = await open();
      const ownModel = isObject(sampling) ? onAsk : undefined;
      if (ownModel !== undefined && sampler.isForClient(asked.params, sampling)) {
        return await ownModel(asked);
      }
      return await sampler.answer(asked, { call, client, onSampled });
    },
  });
}
