/**
 * What carries the messages of a connection: the pipes of a process, or requests over HTTP.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { type JsonObject, quoted } from "../core/json.ts";
import type { ListItem } from "../core/lists.ts";

/** The way of messages to a server. */
export interface Wire {
  /** Sends a message of JSON-RPC; what becomes of it is told to the ends. */
  send(message: JsonObject): void;
  /** Takes back a request; a wire that carries each by itself frees what carried it. */
  cancel?(id: string): void;
  /** Whether the server can say of itself, over this wire, that something has changed. */
  readonly tells: boolean;
  /** Whether the newest revision is tried first: where that costs nothing when it is refused. */
  readonly newestFirst?: boolean;
  /** Makes the error for what a server that is gone does not answer any more. */
  down(why: string, mayHaveRun: boolean): PmlError;
  /** Looks, where a server refused the handshake, whether there is a better word for why. */
  explain?(signal: AbortSignal): Promise<PmlError | undefined>;
  /** Says what permission the server lacks, by what it wrote and such a text. */
  denial?(text: string): Denial | undefined;
  /** Ends it at once: what came over it was no MCP. */
  kill(): void;
  /** Ends it well. */
  close(): Promise<void>;
}

/** A permission that a server was denied, and what to do. */
export interface Denial {
  readonly why: string;
  readonly hint: string;
}

/** Who is told what comes over a wire. */
export interface WireEnds {
  /** A message came, or what should be one; on a way of its own it belongs to that request. */
  received(message: unknown, request?: string): void;
  /** A message came that is more than it may be; its ends may tell which request it answers. */
  excess(ends: Uint8Array, excess: Excess): void;
  /** One request alone has no answer; where that `isOver`, the next one wants another wire. */
  failed(id: string, error: PmlError, options: { readonly isOver: boolean }): void;
  /** What came is no MCP. */
  broken(why: string): void;
  /** Nothing comes any more. */
  ended(error: PmlError): void;
  /** Nobody could hear for a while what the server told of itself. */
  missed(): void;
  /** The server wrote something beside its messages. */
  said(text: string): void;
  /** Gives what is known of a tool of the server. */
  tool(name: string): ListItem | undefined;
}

/** What of a message is too much, and the sizes for programs. */
export interface Excess {
  readonly why: string;
  readonly detail?: { readonly size: number; readonly max: number };
}

/** Opens a wire; where nothing can be opened it throws. */
export type OpenWire = (ends: WireEnds) => Wire;

/** The server has forgotten who it talked to, and has not looked at the request: it may come again. */
export class SessionLost extends PmlError {
  /** Says which server. */
  constructor(server: string) {
    super("UPSTREAM_DOWN", `Cannot reach ${quoted(server)}: it forgets its sessions`, {
      hint: "Nothing was done; try again",
      detail: { may_have_run: false },
    });
  }
}

/** Makes the error of a server that does not answer as it should. */
export function unusable(name: string, why: string, detail?: PmlError["detail"]): PmlError {
  return new PmlError("UPSTREAM_PROTOCOL", `Cannot use ${quoted(name)}: ${why}`, {
    hint: "It does not speak MCP as PML knows it",
    detail,
  });
}
