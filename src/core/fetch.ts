/**
 * The type of the guarded `fetch`: it follows no redirect and reaches only allowed addresses. Also
 * the words for failed connections, which the sandbox uses, too.
 *
 * @module
 */

/** The certificates for one server: absolute paths of PEM files, which each request reads. */
export interface Certificates {
  /** The origin of the server. Requests to other origins do not use the files. */
  readonly origin: string;
  /** Certificate authorities that are trusted in addition to the usual ones. */
  readonly ca?: string | undefined;
  /** The certificate that PML shows to the server. */
  readonly cert?: string | undefined;
  /** The key of that certificate. */
  readonly key?: string | undefined;
}

/** The options of a request to the network. */
export interface FetchOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly signal: AbortSignal;
  /**
   * Hosts that the user named. These may be on this machine or in a private network. All other
   * hosts must be on the internet and use TLS.
   */
  readonly named: ReadonlySet<string>;
  /** The certificates for a server. A request to another origin does not use them. */
  readonly certificates?: Certificates | undefined;
}

/**
 * Sends a request and returns the response, which may be a redirect. Throws `PmlError` if the
 * address is not allowed.
 */
export type Fetch = (url: string, options: FetchOptions) => Promise<Response>;

/** The reasons of failed connections in the words of messages, by the code of the platform. */
export const CONNECTION_PROBLEMS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "its name has no address",
  EAI_AGAIN: "its name could not be looked up",
  ETIMEDOUT: "it could not be connected to in time",
};
