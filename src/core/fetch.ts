/**
 * The type of the guarded `fetch` that other rooms get: it follows no redirect and reaches only
 * allowed addresses.
 *
 * @module
 */

/** The options of a request to the network. */
export interface FetchOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /**
   * Hosts that the person named. These may be on this machine or in a private network. All other
   * hosts must be on the internet and use TLS.
   */
  readonly named: ReadonlySet<string>;
}

/**
 * Sends a request and returns the response, which may be a redirect. Throws `PmlError` if the
 * address is not allowed.
 */
export type Fetch = (url: string, options: FetchOptions) => Promise<Response>;
