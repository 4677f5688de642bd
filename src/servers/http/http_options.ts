/**
 * Options of connections to servers over HTTP.
 *
 * @module
 */

import type { Named } from "./_http_errors.ts";
import type { Authorization } from "../../core/authorization.ts";
import type { Certificates, Fetch } from "../../core/fetch.ts";
import type { EventStreamLimits } from "../../io/event_stream.ts";
import type { WaitForMemory } from "../../io/backlog.ts";
import type { ServerRevisions } from "../client/wire.ts";
import type { OAuthSettings } from "../../core/authorization.ts";
import type { PmlError } from "../../core/errors.ts";

/** Options of a connection. Variables are replaced by their values. */
export interface HttpWireOptions extends Named {
  /** The address that requests are sent to, if it differs from the one to show. */
  readonly requestUrl?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Headers that are sent only with a call of a tool. */
  readonly keyHeaders?: Readonly<Record<string, string>> | undefined;
  /** The hosts that the user named. */
  readonly named: ReadonlySet<string>;
  /** The sign-in of the server; undefined if its definition has a header `Authorization`. */
  readonly authorization?: Authorization | undefined;
  /** The certificates for its origin. */
  readonly certificates?: Certificates | undefined;
  readonly fetch: Fetch;
  readonly limits: EventStreamLimits;
  readonly room?: WaitForMemory | undefined;
  /** The facts about the address. */
  readonly addressState: AddressState;
}

/** How a server is reached. Variables are replaced by their values. */
export interface HttpValues {
  readonly name: string;
  /** The address without the values of keys, for errors, files and sign-ins. */
  readonly url: string;
  /** The address that requests are sent to, if it is another one. It may contain keys. */
  readonly requestUrl?: string | undefined;
  /** Whether its definition has the type `sse`: a URL of the older transport HTTP+SSE. */
  readonly isSse?: boolean | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The same headers as they were written, with the names of variables instead of their values. */
  readonly written: Readonly<Record<string, string>>;
  /** Headers that are sent only with a call of a tool. */
  readonly keyHeaders?: Readonly<Record<string, string>> | undefined;
  /** The hosts that the user named. */
  readonly named: ReadonlySet<string>;
  /** The only tools that may be used, if they are named. */
  readonly tools: readonly string[] | undefined;
  /** Settings of the sign-in, with the values of variables. */
  readonly oauth?: OAuthSettings | undefined;
  /** The certificates for its origin. */
  readonly certificates?: Certificates | undefined;
  /** Its definition as it was written, without the values of variables. */
  readonly definition: unknown;
}

/** The PML that connections over HTTP belong to. `Machine` implements it. */
export interface HttpServersHost {
  readonly fetch: Fetch;
  /** The limits now. */
  readonly limits: HttpWireOptions["limits"];
  readonly room?: WaitForMemory | undefined;
  /** The PML home, which keeps the list of HTTP+SSE addresses. */
  readonly home: string;
  /** Returns the sign-in of a server. */
  authorization(server: HttpValues): Promise<Authorization | undefined>;
}

/** The facts known about an address. */
export interface AddressFacts {
  /** Until when the server counts as one of the older revisions, in milliseconds of the epoch. */
  readonly olderUntil?: number;
  /** Until when a server of the stateless revision counts as one without sessions. */
  readonly noSessionUntil?: number;
  /** Whether it is an address of HTTP+SSE. */
  readonly isSse?: boolean;
  /** Why the other transport failed. It has not been tried again since then. */
  readonly because?: PmlError | undefined;
}

/** The stored facts about the address of a server. */
export interface AddressState extends ServerRevisions {
  /** Stores a fact about the address. */
  store(facts: AddressFacts): void;
  /** Makes the next connection try the other transport once. Returns the error for the refusal. */
  other(error: PmlError): PmlError;
}
