/**
 * Lets the model of a provider answer sampling requests that servers send during a call.
 *
 * @module
 */

import { SAMPLING_METHOD } from "../calls/server_requests.ts";
import { type Call, type CallClient, changeClient } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import type { Sampler } from "./sampler.ts";

/**
 * Returns the client of a call. The model of the provider answers sampling requests of the server,
 * except requests that the client's own model answers.
 */
export function samplingClient(
  call: Call,
  client: CallClient,
  open: () => Promise<Sampler>,
): CallClient {
  const { onServerRequest, sampling } = client;
  return changeClient(client, {
    onServerRequest: async (request) => {
      if (request.method !== SAMPLING_METHOD) {
        if (onServerRequest !== undefined) return await onServerRequest(request);
        const what = `Cannot ask the user for ${quoted(request.server)}: no client is connected`;
        throw new PmlError("BAD_REQUEST", what, {
          hint: "Call the tool from a client that supports elicitation",
        });
      }
      const sampler = await open();
      const ownModel = isObject(sampling) ? onServerRequest : undefined;
      if (ownModel !== undefined && sampler.isForClient(request.params, sampling)) {
        return await ownModel(request);
      }
      return await sampler.answer(request, { call, client });
    },
  });
}
