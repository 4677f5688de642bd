/**
 * How the gateway reaches a client whose requests PML serves without the SDK, or with it later.
 *
 * @module
 */

import type { Implementation, Server } from "@modelcontextprotocol/server";
import { objectOf } from "../core/json.ts";
import type { Peer } from "../gateway/connection.ts";
import { type Era, MODERN } from "./_envelope.ts";
import type { Greeted } from "./_greeting.ts";

/** Returns how the client of a connection is reached, by the SDK once that serves it. */
export function peerOf(
  era: Era,
  { greeted, server, tell }: {
    readonly greeted: Greeted | undefined;
    readonly server: () => Server | undefined;
    readonly tell: (one: { readonly method: string }) => Promise<void>;
  },
): Peer {
  const { params } = (greeted?.message ?? {}) as { readonly params?: unknown };
  const { capabilities, clientInfo } = objectOf(params);
  return {
    getClientCapabilities: () => server()?.getClientCapabilities() ?? objectOf(capabilities),
    getClientVersion: () =>
      server()?.getClientVersion() ?? clientInfo as Implementation | undefined,
    getNegotiatedProtocolVersion: () =>
      era === "modern" ? MODERN[0] : greeted?.result.protocolVersion as string | undefined,
    notification: async (one) => {
      if (era === "legacy") return await tell(one);
      // Only who listens is told, and the SDK knows who does.
      await server()?.notification(one);
    },
  };
}
