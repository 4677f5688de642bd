/**
 * A server that the user signs in at, and the host of sign-ins.
 *
 * @module
 */

import type { OAuthSettings } from "../core/authorization.ts";
import type { Certificates } from "../core/fetch.ts";
import type { Way } from "./_protocol.ts";
import type { Keyring } from "./token_store.ts";
import type { WarningLog } from "../io/private_files.ts";
import type { IssuerHosts } from "./_sites.ts";
import type { RefreshRequest } from "./refreshing.ts";

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
