/**
 * Signs the person in at servers over HTTP, and keeps the tokens.
 *
 * @module
 */

import type { Authorization, OAuthSettings } from "../core/authorization.ts";
import type { Certificates } from "../core/fetch.ts";
import type { WarningLog } from "../io/private_files.ts";
import { SignedInServer } from "./_authorization.ts";
import type { Way } from "./_protocol.ts";
import { beginSignIn } from "./_sign_in.ts";
import { endSignIn } from "./_sign_out.ts";
import type { IssuerHosts } from "./_sites.ts";
import type { RefreshRequest } from "./refreshing.ts";
import { FileTokenStore, keyOf, type Keyring, type TokenStore } from "./token_store.ts";

/** A server to sign in at. */
export interface OAuthServer {
  readonly name: string;
  /** The address without the values of keys. */
  readonly url: string;
  /** The address that requests are sent to, if it is another one. */
  readonly requestUrl?: string | undefined;
  /** The hosts that the person named. */
  readonly named: ReadonlySet<string>;
  readonly oauth?: OAuthSettings | undefined;
  /** The certificates for its origin. */
  readonly certificates?: Certificates | undefined;
}

/** A sign-in that waits for the person. Disposing gives it up. */
export interface SignIn extends AsyncDisposable {
  /** The address that the person opens in a browser. */
  readonly url: string;
  /** The URL of the authorization server's issuer. */
  readonly issuer: string;
  /** The host that receives the authorization code. */
  readonly codeHost: string;
  /** The id of the client, if the authorization server may know it from other servers. */
  readonly sharedClient: string | undefined;
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
  /** The id of the client that PML is there. */
  readonly client: string;
  /** When the access token expires or was over, in milliseconds since 1970, if anybody said. */
  readonly until: number | undefined;
  /** Whether it is renewed without the person. */
  readonly isRenewed: boolean;
  /** Whether its tokens are in the keyring of the system. */
  readonly isInKeyring: boolean;
}

/** The PML that sign-ins belong to. */
export interface SignInHost extends Way {
  /** The folder that they are kept in. */
  readonly folder: string;
  /** Where tokens go; into files of the folder if it is undefined. */
  readonly keyring?: Keyring | undefined;
  readonly log: WarningLog;
  /** The address of the person's client id metadata document now, if there is one. */
  readonly document?: string | undefined;
  /** The user's own list of hosts that an issuer may use now, if there is one. */
  readonly issuerHosts?: IssuerHosts | undefined;
  /** Registers secrets, which are removed from every text from now on, and forgets others. */
  register(secrets: readonly string[], over: readonly string[]): void;
  /** Has another process refresh a sign-in. */
  refresh(request: RefreshRequest): Promise<void>;
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
