/**
 * Signs the user in at servers over HTTP, and stores the tokens.
 *
 * @module
 */

import type { Authorization } from "../core/authorization.ts";
import { SignedInServer } from "./_authorization.ts";
import { beginSignIn } from "./_sign_in.ts";
import { endSignIn } from "./_sign_out.ts";
import { FileTokenStore, signInKey, type TokenStore } from "./token_store.ts";
import type { OAuthServer, SignIn, SignInHost } from "./oauth_server.ts";

/** A sign-in without its tokens. */
export interface SignedIn {
  readonly server: string;
  readonly url: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** The client id of PML. */
  readonly client: string;
  /** When the access token expires or expired, in milliseconds since 1970, if known. */
  readonly until: number | undefined;
  /** Whether PML renews the sign-in without the user. */
  readonly isRenewed: boolean;
  /** Whether the tokens are in the keyring of the system. */
  readonly isInKeyring: boolean;
}

/** The sign-ins of the user. */
export class SignIns {
  readonly #host: SignInHost;
  readonly #store: TokenStore;
  readonly #servers = new Map<string, SignedInServer>();

  /** Creates the sign-ins without reading anything. */
  constructor(host: SignInHost) {
    this.#host = host;
    this.#store = new FileTokenStore(host.folder, host.log, host.keyring);
  }

  /** Returns the authorization of requests to a server: the same object for the same server. */
  of(server: OAuthServer): Authorization {
    const key = signInKey(server);
    const entry = this.#servers.get(key) ?? new SignedInServer(server, this.#store, this.#host);
    entry.server = server;
    this.#servers.set(key, entry);
    return entry;
  }

  /** Starts a sign-in. Also requests `scopes`, if a call needs them. */
  async begin(
    server: OAuthServer,
    { scopes = [], signal }: { readonly scopes?: readonly string[]; readonly signal: AbortSignal },
  ): Promise<SignIn> {
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
  all(): Promise<readonly SignedIn[]> {
    const all = this.#store.all().map(({ server, url, issuer, scopes, until, ...secretParts }) => ({
      server,
      url,
      issuer,
      scopes,
      until,
      client: secretParts.client.client_id,
      isRenewed: secretParts.isRenewed ?? secretParts.refreshToken !== undefined,
      isInKeyring: secretParts.isRenewed !== undefined,
    }));
    return Promise.resolve(all.sort((a, b) => a.server < b.server ? -1 : 1));
  }
}
