/**
 * The transport of a connection: the pipes of a process, or HTTP requests.
 *
 * @module
 */

import { PmlError } from "../../core/errors.ts";
import { type JsonObject, quoted } from "../../core/json.ts";
import type { ListItem } from "../../protocol/lists.ts";
import type { RequestId } from "../../protocol/rpc_peer.ts";

/** Carries the messages to a server. */
export interface Wire {
  /** Sends a JSON-RPC message. The callbacks in `WireEvents` report the outcome. */
  send(message: JsonObject): void;
  /** Cancels a request, and frees its HTTP request. */
  cancel?(id: RequestId, params: JsonObject): void;
  /** Whether the server can send notifications at any time. */
  readonly tells: boolean;
  /** Returns the error for requests that a server has not answered when it ended. */
  down(why: string, mayHaveRun: boolean): PmlError;
  /**
   * The revisions of the server, as far as they are known. Without it, `initialize` is tried first.
   */
  readonly revisions?: ServerRevisions | undefined;
  /** Whether the server gave the connection a session. */
  readonly hasSession?: boolean;
  /** Returns the error for a refused handshake: `SessionLost` if another wire is worth a try. */
  explain?(error: PmlError): PmlError;
  /** Returns the permission that the server lacks, found in its output and the given text. */
  denial?(text: string): Denial | undefined;
  /** Closes it at once: the server broke the protocol. */
  kill(): void;
  /** Closes it gracefully. */
  close(): Promise<void>;
}

/** Remembers which revisions a server supports. */
export interface ServerRevisions {
  /**
   * How long the stateless revision is tried before `initialize`, in milliseconds; undefined if
   * `initialize` is tried first.
   */
  readonly discoverMs: number | undefined;
  /** Whether the server is asked for the stateless revision after it took `initialize`. */
  readonly isUnknown?: boolean;
  /**
   * Whether a server of the stateless revision may have sessions of the older ones, too. Set where
   * another connection costs little.
   */
  readonly mayHaveSession?: boolean;
  /**
   * Remembers that the server took `initialize` after it did not support the stateless revision.
   * `isSilent`: it did not answer, which a server that starts slowly does, too.
   */
  foundOlder(how: { readonly isSilent: boolean }): void;
  /** Remembers that the server supports the stateless revision. */
  foundStateless?(): void;
  /** Forgets the revision: the handshake failed. */
  forget?(): void;
  /** Remembers that a session of the older revisions could not be opened. */
  foundNoSession?(how: { readonly isRefused: boolean }): void;
}

/** A permission that a server lacks, and a hint how to grant it. */
export interface Denial {
  readonly why: string;
  readonly hint: string;
}

/** The callbacks of a wire. */
export interface WireEvents {
  /** Receives a parsed message. `request` is set if it came on the stream of one request. */
  onMessage(message: unknown, request?: RequestId): void;
  /** Receives the beginning and the end of a message that is over the limits. */
  excess(ends: Uint8Array, excess: Excess): void;
  /**
   * Is called if one request failed, or without an id if the stream of notifications did. If
   * `isOver` is set, the next request needs another wire.
   */
  onFailure(
    id: RequestId | undefined,
    error: PmlError,
    options: { readonly isOver: boolean },
  ): void;
  /** Is called if the server broke the protocol. */
  onProtocolError(why: string): void;
  /** Is called when the wire is closed. */
  onEnd(error: PmlError): void;
  /** Is called if notifications of the server may have been lost. */
  onMissed(): void;
  /** Receives output of the server that is not a message. */
  onOutput(text: string): void;
  /** Returns the definition of a tool of the server, if it is known. */
  tool(name: string): ListItem | undefined;
}

/** The limit that a message exceeds, and the sizes for programs. */
export interface Excess {
  readonly why: string;
  readonly detail?: { readonly size: number; readonly max: number };
}

/** Opens a wire. Throws if it cannot. */
export type OpenWire = (events: WireEvents) => Wire;

/**
 * The error if the server lost the session, or wants another transport. It did not handle the
 * request, which can be retried.
 */
export class SessionLost extends PmlError {
  /** Takes the name of the server. */
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

/** Tries once more, in another session, if the server lost the first one. */
export function againIfLost<T>(once: () => Promise<T>): Promise<T> {
  return once().catch((error) => {
    if (error instanceof SessionLost) return once();
    throw error;
  });
}
