/**
 * Signs the user in at servers over HTTP, and stores the tokens.
 *
 * @module
 */

import type { Authorization } from "../core/authorization.ts";
import { ServerAuthorization } from "./_authorization.ts";
import { beginSignIn } from "./_sign_in.ts";
import { endSignIn } from "./_sign_out.ts";
import { FileTokenStore, isInKeyring, signInKey, type TokenStore } from "./token_store.ts";
import type { OAuthServer, PendingSignIn, SignInHost } from "./oauth_server.ts";

/** A stored sign-in without its tokens, for lists. */
export interface SignInSummary {
  readonly server: string;
  readonly url: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** The client id of PML. */
  readonly client: string;
  /** When the access token expires or expired, in milliseconds since 1970, if known. */
  readonly until: number | undefined;
  /** Whether PML renews the sign-in without the user. */
  readonly isRenewable: boolean;
  /** Whether the tokens are in the keyring of the system. */
  readonly isInKeyring: boolean;
}

/** The sign-ins of the user. */
export class SignIns {
  readonly #host: SignInHost;
  readonly #store: TokenStore;
  readonly #servers = new Map<string, ServerAuthorization>();

  /** Creates the sign-ins without reading anything. */
  constructor(host: SignInHost) {
    this.#host = host;
    this.#store = new FileTokenStore(host.folder, host.log, host.keyring);
  }

  /**
   * Returns the authorization of requests to a server: the same object for the same server, also if
   * the user is not signed in there.
   */
  of(server: OAuthServer): Authorization {
    const key = signInKey(server);
    const entry = this.#servers.get(key) ??
      new ServerAuthorization(server, this.#store, this.#host);
    entry.server = server;
    this.#servers.set(key, entry);
    return entry;
  }

  /** Starts a sign-in. Also requests `scopes`, if a call needs them. */
  async begin(
    server: OAuthServer,
    { scopes = [], signal }: { readonly scopes?: readonly string[]; readonly signal: AbortSignal },
  ): Promise<PendingSignIn> {
    return await beginSignIn({
      host: this.#host,
      store: this.#store,
      server,
      neededScopes: scopes,
      signal,
    });
  }

  /** Revokes the tokens if the server supports that, and removes them. Returns the result. */
  async end(server: OAuthServer, signal: AbortSignal): Promise<"none" | "removed" | "revoked"> {
    const store = this.#store;
    const signIn = store.peek(signInKey(server));
    if (signIn === undefined) return "none";
    return await endSignIn(signIn, { host: this.#host, store, server, signal });
  }

  /** Returns all stored sign-ins, sorted by server. */
  all(): Promise<readonly SignInSummary[]> {
    const all = this.#store.all().map((content) => {
      const { server, url, issuer, scopes, until, client, refreshToken } = content;
      return {
        server,
        url,
        issuer,
        scopes,
        until,
        client: client.client_id,
        isRenewable: content.isRenewed ?? refreshToken !== undefined,
        isInKeyring: isInKeyring(content),
      };
    });
    return Promise.resolve(all.sort((a, b) => a.server < b.server ? -1 : 1));
  }
}
