/**
 * The options of connections to servers over HTTP.
 *
 * @module
 */

import type { HttpServerFacts } from "./_http_errors.ts";
import type { Authorization } from "../../core/authorization.ts";
import type { Certificates, Fetch } from "../../core/fetch.ts";
import type { EventStreamLimits } from "../../io/event_stream.ts";
import type { WaitForMemory } from "../../io/backlog.ts";
import type { ServerRevisions } from "../client/wire.ts";
import type { OAuthSettings } from "../../core/authorization.ts";
import type { PmlError } from "../../core/errors.ts";

/** Options of a connection. Variables are replaced by their values. */
export interface HttpWireOptions extends HttpServerFacts {
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
  readonly waitForMemory?: WaitForMemory | undefined;
  /** Stores facts about the address. */
  readonly addressState: AddressState;
}

/** The address and headers of a server. Variables are replaced by their values. */
export interface HttpValues {
  readonly name: string;
  /** The address without the values of keys, for errors, files and sign-ins. */
  readonly url: string;
  /** The address to which requests are sent, if it differs from `url`. It may contain keys. */
  readonly requestUrl?: string | undefined;
  /** Whether its definition has the type `sse`, for a URL of the older transport HTTP+SSE. */
  readonly isSse?: boolean | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The same headers as they were written, with the names of variables instead of their values. */
  readonly written: Readonly<Record<string, string>>;
  /** Headers that are sent only with a call of a tool. */
  readonly keyHeaders?: Readonly<Record<string, string>> | undefined;
  /** The hosts that the user named. */
  readonly named: ReadonlySet<string>;
  /** The only tools that may be used; undefined if all may be used. */
  readonly tools: readonly string[] | undefined;
  /** Settings of the sign-in, with the values of variables. */
  readonly oauth?: OAuthSettings | undefined;
  /** The certificates for its origin. */
  readonly certificates?: Certificates | undefined;
  /** The definition as it was written, without the values of variables. */
  readonly definition: unknown;
}

/** The services of PML that connections over HTTP use. `Machine` implements it. */
export interface HttpServersHost {
  readonly fetch: Fetch;
  /** The current limits. */
  readonly limits: HttpWireOptions["limits"];
  readonly waitForMemory?: WaitForMemory | undefined;
  /** The PML home, where facts about addresses are stored. */
  readonly home: string;
  /** Returns the sign-in of a server. */
  authorization(server: HttpValues): Promise<Authorization | undefined>;
}

/** The facts known about an address. */
export interface AddressFacts {
  /**
   * Until when PML assumes that the server has only older revisions, in milliseconds since 1970.
   */
  readonly olderUntil?: number;
  /** Until when PML assumes that the server, of the stateless revision, opens no sessions. */
  readonly noSessionUntil?: number;
  /** Whether the server uses HTTP+SSE at this address. */
  readonly isSse?: boolean;
  /** The error of the first transport, if the other one is tried now. */
  readonly firstError?: PmlError | undefined;
}

/** The stored facts about the address of a server. */
export interface AddressState extends ServerRevisions {
  /** Stores a fact about the address. */
  store(facts: AddressFacts): void;
  /** Makes the next connection try the other transport, once. Returns the error to report. */
  useOtherTransport(error: PmlError): PmlError;
}
