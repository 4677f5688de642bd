/**
 * The connection of a client and the requests on it, whoever reads its messages: the SDK, or PML
 * itself, which serves usual requests without the SDK.
 *
 * @module
 */

import type { McpServerFactory, Server } from "@modelcontextprotocol/server";
import type { Cancellation } from "../core/cancellation.ts";
import { type Json, type JsonObject, objectOf } from "../core/json.ts";
import type { Client, Clients, Party } from "./_clients.ts";
import type { Hello } from "./hello.ts";

/** How a client is reached, and what it said of itself when it connected. */
export type Peer = Pick<
  Server,
  "notification" | "getClientCapabilities" | "getClientVersion" | "getNegotiatedProtocolVersion"
>;

/** A request of a client, without its params. */
export interface RequestContext {
  readonly id: Json;
  /** The id as JSON. */
  readonly idText: string;
  readonly method: string;
  /** The `_meta` of its params. */
  readonly meta: JsonObject | undefined;
  /** The reserved keys of its `_meta`, in the newest revision. */
  readonly envelope: JsonObject | undefined;
  /** The answers of the client to earlier questions. */
  readonly inputResponses: JsonObject | undefined;
  /** The state that the client brings back. */
  readonly requestState: unknown;
  /** Cancels the request. */
  readonly cancellation: Cancellation;
  /** The headers that came with it over HTTP, which repeat arguments. */
  readonly headers: Pick<Headers, "get"> | undefined;
  /** Sends a request to the client while this one waits, and returns its result. */
  ask(method: string, params: JsonObject, options: AskOptions): Promise<JsonObject>;
  /** Sends a notification to the client. */
  notify(notification: { readonly method: string; readonly params: object }): Promise<void>;
}

/** The options of a request to the client. */
export interface AskOptions {
  readonly signal: AbortSignal;
  /** How long the client may take, in milliseconds. */
  readonly ms: number;
}

/** The connection of one client, until it is closed. */
export interface Connection {
  readonly isModern: boolean;
  /** Returns the result of a request. Throws the JSON-RPC error that the client is told. */
  serve(params: unknown, context: RequestContext): Promise<JsonObject>;
  close(): void;
}

/** What serves the connections of one party. */
export interface Face {
  /** Has the SDK serve a connection, which `open` opens unless it is left out. */
  readonly factory: (
    about: Pick<Parameters<McpServerFactory>[0], "era">,
    open?: (server: Server) => Connection,
  ) => Promise<Server>;
  /** Opens a connection without the SDK. A session over HTTP is a party of its own. */
  readonly connect: (peer: Peer, isModern: boolean, party?: Party) => Connection;
}

/** What `faceOf` needs. */
export interface FaceOptions {
  readonly clients: Clients;
  readonly party: Party;
  readonly hello: (isModern: boolean) => Hello;
  readonly serve: (
    request: {
      readonly client: Client;
      readonly context: RequestContext;
      readonly params: JsonObject;
    },
  ) => Promise<JsonObject>;
  /** Is called with a client that has gone. */
  readonly onLeft: (client: Client) => void;
  readonly onError: (error: Error) => void;
}

/** Makes what serves the connections of a party. */
export function faceOf(options: FaceOptions): Face {
  const { clients, serve, onLeft } = options;
  const connect = (peer: Peer, isModern: boolean, party = options.party): Connection => {
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
  return {
    connect,
    factory: async ({ era }, open) => {
      const { sdkServer } = await import("./_sdk_server.ts");
      const isModern = era === "modern";
      return sdkServer(options.hello(isModern), {
        onError: options.onError,
        open: open ?? ((server) => connect(server, isModern)),
      });
    },
  };
}
