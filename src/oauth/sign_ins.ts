/**
 * Signs the person in at servers over HTTP, and keeps the tokens.
 *
 * @module
 */

import type { Authorization } from "../core/authorization.ts";
import { SignedInServer } from "./_authorization.ts";
import { beginSignIn } from "./_sign_in.ts";
import { endSignIn } from "./_sign_out.ts";
import { FileTokenStore, keyOf, type TokenStore } from "./token_store.ts";
import type { OAuthServer, SignIn, SignInHost } from "./oauth_server.ts";

/** What is known of a sign-in, without its tokens. */
export interface SignedIn {
  readonly server: string;
  readonly url: string;
  readonly issuer: string;
  readonly scopes: readonly string[];
  /** The id of the client that PML is there. */
  readonly client: string;
  /** When the access token expires or was over, in milliseconds since 1970, if anybody said. */
  readonly until: number | undefined;
  /** Whether it is renewed without the person. */
  readonly isRenewed: boolean;
  /** Whether its tokens are in the keyring of the system. */
  readonly isInKeyring: boolean;
}

/** The sign-ins of the person. */
export class SignIns {
  readonly #host: SignInHost;
  readonly #store: TokenStore;
  readonly #servers = new Map<string, SignedInServer>();

  /** Reads nothing yet. */
  constructor(host: SignInHost) {
    this.#host = host;
    this.#store = new FileTokenStore(host.folder, host.log, host.keyring);
  }

  /** Returns what the requests to a server carry: the same object for the same server. */
  of(server: OAuthServer): Authorization {
    const key = keyOf(server);
    const known = this.#servers.get(key) ?? new SignedInServer(server, this.#store, this.#host);
    known.server = server;
    this.#servers.set(key, known);
    return known;
  }

  /** Begins a sign-in. Asks for `scopes` too, if a call needed them. */
  async begin(
    server: OAuthServer,
    { scopes = [], signal }: { readonly scopes?: readonly string[]; readonly signal: AbortSignal },
  ): Promise<SignIn> {
    return await beginSignIn({
      host: this.#host,
      store: this.#store,
      server,
      more: scopes,
      signal,
    });
  }

  /** Revokes the tokens where the server can, and removes them. Returns what was done. */
  async end(server: OAuthServer, signal: AbortSignal): Promise<"none" | "removed" | "revoked"> {
    const store = this.#store;
    const kept = store.look(keyOf(server));
    if (kept === undefined) return "none";
    return await endSignIn(kept, { host: this.#host, store, server, signal });
  }

  /** Returns all sign-ins that are kept, sorted by server. */
  all(): Promise<readonly SignedIn[]> {
    const all = this.#store.all().map(({ server, url, issuer, scopes, until, ...kept }) => ({
      ...{ server, url, issuer, scopes, until },
      client: kept.client.client_id,
      isRenewed: kept.isRenewed ?? kept.refreshToken !== undefined,
      isInKeyring: kept.isRenewed !== undefined,
    }));
    return Promise.resolve(all.sort((a, b) => a.server < b.server ? -1 : 1));
  }
}
