/**
 * Types for servers that the user signs in at, and for the services of PML that sign-ins use.
 *
 * @module
 */

import type { OAuthSettings } from "../core/authorization.ts";
import type { Certificates } from "../core/fetch.ts";
import type { OAuthNetwork } from "./_protocol.ts";
import type { Keyring } from "./token_store.ts";
import type { WarningLog } from "../io/private_files.ts";
import type { IssuerHosts } from "./_sites.ts";
import type { RefreshRequest } from "./refresh_sign_in.ts";

/** A server that the user signs in at. */
export interface OAuthServer {
  readonly name: string;
  /** The URL without the values of keys. */
  readonly url: string;
  /** The URL that requests are sent to, if it differs. */
  readonly requestUrl?: string | undefined;
  /** The hosts that the user configured. */
  readonly named: ReadonlySet<string>;
  readonly oauth?: OAuthSettings | undefined;
  /** The certificates for its origin. */
  readonly certificates?: Certificates | undefined;
}

/** A sign-in that waits for the user. Disposing cancels it. */
export interface PendingSignIn extends AsyncDisposable {
  /** The URL that the user opens in a browser. */
  readonly url: string;
  /** The URL of the authorization server's issuer. */
  readonly issuer: string;
  /** The host that receives the authorization code. */
  readonly codeHost: string;
  /** The id of the client, if the authorization server may know it from other servers. */
  readonly sharedClient: string | undefined;
  /** Resolves when the tokens are stored. Rejects if the user or the server refuses. */
  readonly done: Promise<void>;
  /** Accepts the redirect URL from a browser on another machine. */
  paste(address: string): void;
}

/** The services of PML that sign-ins use. */
export interface SignInHost extends OAuthNetwork {
  /** The folder of the sign-in files. */
  readonly folder: string;
  /** The keyring for tokens. Without one, tokens are stored in files of the folder. */
  readonly keyring?: Keyring | undefined;
  readonly log: WarningLog;
  /** The current URL of the user's client id metadata document, if there is one. */
  readonly document?: string | undefined;
  /** The user's current list of hosts that issuers may use, if there is one. */
  readonly issuerHosts?: IssuerHosts | undefined;
  /** Registers secrets, which are redacted from all texts from now on, and removes old secrets. */
  register(secrets: readonly string[], oldSecrets: readonly string[]): void;
  /** Refreshes a sign-in in another process. */
  refresh(request: RefreshRequest): Promise<void>;
}
