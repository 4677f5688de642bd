/**
 * Has each call get what the definition of its server says of its tool.
 *
 * @module
 */

import type { Gate } from "../core/call.ts";
import type { Servers } from "./servers.ts";

/** Settles calls. Throws where one cannot be settled, unless a later gate does that. */
export function settledGate(servers: Pick<Servers, "settled">, isToldLater = false): Gate {
  return (next) => async (call) => {
    const settled = await servers.settled(call).catch((error) => {
      if (isToldLater) return call;
      throw error;
    });
    return await next(settled);
  };
}
