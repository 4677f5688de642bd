/**
 * The connection of a client and the requests on it, whoever reads its messages: the SDK, or PML
 * itself, which serves usual requests without the SDK.
 *
 * @module
 */

import type { McpServerFactory, Server, ServerContext } from "@modelcontextprotocol/server";
import { type JsonObject, objectOf } from "../core/json.ts";
import type { Cancel } from "../core/quick_tool.ts";
import type { Client, Clients, Party } from "./_clients.ts";
import type { Hello } from "./hello.ts";

/** How a client is reached, and what it said of itself when it connected. */
export type Peer = Pick<
  Server,
  "notification" | "getClientCapabilities" | "getClientVersion" | "getNegotiatedProtocolVersion"
>;

/** What came with a request. The context that the SDK makes is one. */
export interface RequestContext {
  readonly mcpReq: Pick<
    ServerContext["mcpReq"],
    | "id"
    | "method"
    | "_meta"
    | "envelope"
    | "inputResponses"
    | "requestState"
    | "signal"
    | "send"
    | "notify"
  >;
  readonly http?: ServerContext["http"];
}

/** A request that may be served at once: what came with it, and where its answer goes. */
export interface QuickContext {
  /** The id of the request, as JSON. */
  readonly id: string;
  readonly envelope: JsonObject | undefined;
  /** The headers that came with it over HTTP, which repeat arguments. */
  readonly headers?: Pick<Headers, "get"> | undefined;
  /** Makes the context of the request, which it needs if it is not served at once. */
  readonly context: () => RequestContext;
  readonly answered: (result: JsonObject) => void;
  /** Receives the JSON-RPC error that the client is told. */
  readonly failed: (error: unknown) => void;
}

/** The connection of one client, until it is closed. */
export interface Connection {
  readonly isModern: boolean;
  /**
   * Begins to serve a call of a tool that can run at once, and returns a function that cancels it.
   * Returns undefined, and has done nothing, if it is to be served in the usual way.
   */
  begin(params: JsonObject, from: QuickContext): Cancel | undefined;
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
  readonly begin: (
    request: {
      readonly client: Client;
      readonly params: JsonObject;
      readonly from: QuickContext;
    },
  ) => Cancel | undefined;
  /** Is called with a client that has gone. */
  readonly onLeft: (client: Client) => void;
  readonly onError: (error: Error) => void;
}

/** Makes what serves the connections of a party. */
export function faceOf(options: FaceOptions): Face {
  const { clients, serve, begin, onLeft } = options;
  const connect = (peer: Peer, isModern: boolean, party = options.party): Connection => {
    const client = clients.add(peer, isModern, party);
    return {
      isModern,
      serve: (params, context) => serve({ client, context, params: objectOf(params) }),
      begin: (params, from) => begin({ client, params, from }),
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
