/**
 * Interfaces for a server that PML connects to, and for the transport of the connection ("wire"):
 * the pipes of a process, or HTTP requests.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { type JsonObject, quoted } from "../../core/json.ts";
import type { ListItem } from "../../protocol/lists.ts";
import type { RequestId } from "../../protocol/rpc_peer.ts";

/** A server, and how to reach it. */
export interface UpstreamServer {
  readonly name: string;
  /** The only tools that may be used; undefined if all may be used. */
  readonly tools: readonly string[] | undefined;
  /** The definition of the server, without the values of variables. */
  readonly definition: unknown;
  /** The address and the headers with the values of variables, if the server has an address. */
  readonly values?: unknown;
  /** Whether PML stores the lists and declarations of the server in files, for other processes. */
  readonly hasFiles: boolean;
  /** Whether the server is reached over the network: failures take long, so they are remembered. */
  readonly isRemote?: boolean;
  /**
   * Returns the name that the server expects in calls for a tool of its list. Undefined if both
   * names are the same.
   */
  readonly toolName?: (tool: string) => string;
  /**
   * Returns a text that contains everything on which a connection depends. If it changes, PML opens
   * a new connection.
   */
  readonly version: () => string;
  /** Prepares a connection. `closing` aborts the preparation. */
  readonly prepare: (closing: AbortSignal) => Promise<OpenWire>;
}

/** Carries the messages to a server. */
export interface Wire {
  /** Sends a JSON-RPC message. The callbacks in `WireEvents` report the outcome. */
  send(message: JsonObject): void;
  /** Cancels a request, and ends the HTTP request that carries it. Undefined on pipes. */
  cancel?(id: RequestId, params: JsonObject): void;
  /** Whether the server can send notifications at any time. */
  readonly reportsChanges: boolean;
  /**
   * Returns the error for requests that a server had not answered when it ended. `mayHaveRun` is
   * whether the server may have received such a request.
   */
  downError(why: string, mayHaveRun: boolean): PmlError;
  /**
   * Remembers which revisions the server supports. If undefined, `initialize` is tried first, and
   * nothing is remembered.
   */
  readonly revisions?: ServerRevisions | undefined;
  /** The address of the server, if it has one. */
  readonly address?: URL | undefined;
  /** Returns the resident memory of a server's process and of its child processes, in bytes. */
  rss?(): number;
  /** Whether the server opened a session for this connection. */
  readonly hasSession?: boolean;
  /** The id of the session. It is a credential. */
  readonly sessionId?: string | undefined;
  /** Returns the error for a refused handshake: `SessionLost` if another transport may work. */
  explain?(error: PmlError): PmlError;
  /** Searches the output of the server and `text` for a missing permission. */
  denial?(text: string): Denial | undefined;
  /** Closes the wire immediately, because the server broke the protocol or hangs. */
  kill(): void;
  /** Closes the wire gracefully. */
  close(): Promise<void>;
}

/** Remembers which revisions a server supports. */
export interface ServerRevisions {
  /**
   * How long the stateless revision is tried before `initialize`, in milliseconds; undefined if
   * `initialize` is tried first.
   */
  readonly discoverMs: number | undefined;
  /** Whether PML asks the server for the stateless revision after it accepted `initialize`. */
  readonly isUnknown?: boolean;
  /**
   * Whether a server of the stateless revision may also have sessions of the older revisions. Set
   * only for transports on which a further connection costs little.
   */
  readonly mayHaveSession?: boolean;
  /**
   * Remembers that the server accepted `initialize`, but not the stateless revision. With
   * `isSilent`, it did not answer `server/discover` in time, so it may only have started slowly.
   */
  foundOlder(how: { readonly isSilent: boolean }): void;
  /** Remembers that the server supports the stateless revision. */
  foundStateless?(): void;
  /** Forgets the revision: the handshake failed. */
  forget?(): void;
  /**
   * Remembers that a session of the older revisions could not be opened. With `isRefused`, the
   * server answered so.
   */
  foundNoSession?(how: { readonly isRefused: boolean }): void;
}

/** A permission that a server lacks, and a hint how to grant it. */
export interface Denial {
  readonly why: string;
  readonly hint: string;
}

/** The callbacks of a wire. */
export interface WireEvents {
  /**
   * Receives a parsed message. `request` is set if the message came on the stream of that request.
   */
  onMessage(message: unknown, request?: RequestId): void;
  /** Receives the beginning and the end of a message that is over the limits. */
  onExcess(ends: Uint8Array, excess: Excess): void;
  /**
   * Is called if a request failed, or without an id if the stream of notifications failed. With
   * `isLost`, the wire is lost: the next request needs another wire.
   */
  onFailure(
    id: RequestId | undefined,
    error: PmlError,
    options: { readonly isLost: boolean },
  ): void;
  /** Is called if the server broke the protocol. */
  onProtocolError(why: string): void;
  /**
   * Is called when the wire is closed: with an error, or with the reason, of which the connection
   * makes an error (`Wire.downError`).
   */
  onEnd(end: PmlError | string): void;
  /**
   * Is called if notifications of the server may have been lost, for example while it reconnected.
   */
  onMissed(): void;
  /** Receives output of the server that is not a message. */
  onOutput(text: string): void;
  /** Returns the definition of a tool of the server, if it is known. */
  tool(name: string): ListItem | undefined;
}

/** Which limit a message exceeds: as a text, and as numbers for programs. */
export interface Excess {
  readonly why: string;
  readonly detail?: { readonly size: number; readonly max: number };
}

/** Opens a wire. Throws if it cannot. */
export type OpenWire = (events: WireEvents) => Wire;

/**
 * The error for a server that lost the session, or refused the transport. The server did not handle
 * the request, so the request can be sent again.
 */
export class SessionLost extends PmlError {
  /** `server` is the name of the server. */
  constructor(server: string, why = "it lost the session") {
    super("UPSTREAM_DOWN", `Cannot reach ${quoted(server)}: ${why}`, {
      hint: "Nothing was done. Try again",
      detail: { may_have_run: false },
    });
  }
}

/** Returns the error for a server that breaks the protocol. */
export function protocolError(name: string, why: string, detail?: PmlError["detail"]): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot use ${quoted(name)}: ${why}`, {
    hint: "The server does not follow the MCP specification",
    detail,
  });
}

/** Runs `once`, and runs it again if the server lost the session. */
export function retryIfLost<T>(once: () => Promise<T>): Promise<T> {
  return once().catch((error) => {
    if (error instanceof SessionLost) return once();
    throw error;
  });
}
