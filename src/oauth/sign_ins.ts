/**
 * Signs the person in at servers over HTTP, and keeps the tokens.
 *
 * @module
 */

import type { Authorization } from "../core/authorization.ts";

/** The values of the key `oauth` beside the URL of a server. Variables are replaced. */
export interface OAuthSettings {
  /** The id of a client that the person registered. */
  readonly client_id?: string;
  readonly client_secret?: string;
  /** The scopes to ask for, instead of those that the server names. */
  readonly scopes?: readonly string[];
  /** The port of the address that the browser is sent back to; by default a free one. */
  readonly redirect_port?: number;
}

/** A server to sign in at. */
export interface OAuthServer {
  readonly name: string;
  readonly url: string;
  /** The hosts that the person named. */
  readonly named: ReadonlySet<string>;
  readonly oauth?: OAuthSettings | undefined;
}

/** A sign-in that waits for the person. Disposing gives it up. */
export interface SignIn extends AsyncDisposable {
  /** The address that the person opens in a browser. */
  readonly url: string;
  /** The origin of the authorization server. */
  readonly issuer: string;
  /** Resolves when the tokens are kept. Rejects if the person or the server refuses. */
  readonly done: Promise<void>;
  /** Takes the address that the browser was sent to, where that browser is on another machine. */
  paste(address: string): void;
}

/** What is known of a sign-in, without its tokens. */
export interface SignedIn {
  readonly server: string;
  readonly url: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** When the access token expires, in milliseconds since 1970; undefined if nobody said. */
  readonly until: number | undefined;
  /** Whether it is renewed without the person. */
  readonly isRenewed: boolean;
}

/** The sign-ins of the person. */
export interface SignIns {
  /** Returns what the requests to a server carry: the same object for the same server. */
  of(server: OAuthServer): Authorization;
  /** Begins a sign-in. Asks for `scopes` too, if a call needed them. */
  begin(
    server: OAuthServer,
    options: { readonly scopes?: readonly string[]; readonly signal: AbortSignal },
  ): Promise<SignIn>;
  /** Revokes the tokens where the server can, and removes them. Returns what was done. */
  end(server: OAuthServer, signal: AbortSignal): Promise<"none" | "removed" | "revoked">;
  /** Returns all sign-ins that are kept, sorted by server. */
  all(): Promise<readonly SignedIn[]>;
}
