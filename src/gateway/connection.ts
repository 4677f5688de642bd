/**
 * Opens the connections of clients to the gateway.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";
import type { Face } from "../protocol/connection.ts";
import type { Client, Clients, Party } from "./_clients.ts";
import type { ClientRequest } from "./interaction/client_request.ts";

/** A request as it was received, before the client's description of itself is read. */
export type ReceivedRequest = Pick<ClientRequest, "client" | "context" | "params">;

/** The options of `faceOf`. */
export interface FaceOptions {
  readonly clients: Clients;
  readonly party: Party;
  readonly serve: (request: ReceivedRequest) => Promise<JsonObject>;
  /** Is called with a client that has gone. */
  readonly onLeft: (client: Client) => void;
}

/** Returns an object that opens the connections of a party. */
export function faceOf(options: FaceOptions): Face {
  const { clients, serve, onLeft } = options;
  const connect: Face["connect"] = (peer, isModern, party = options.party) => {
    const client = clients.add(peer, isModern, party);
    return {
      isModern,
      serve: (params, context) => serve({ client, context, params: objectOf(params) }),
      close: () => {
        clients.remove(client);
        onLeft(client);
      },
    };
  };
  return { connect };
}
