/**
 * A way out to the network that is handed in: it follows no redirect and reaches no address that it
 * may not.
 *
 * @module
 */

/** A request that goes out. */
export interface FetchOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /**
   * Hosts that the person named, which may lie on this machine or in a private network; any other
   * must be on the internet, and reached over TLS.
   */
  readonly named: ReadonlySet<string>;
}

/** Sends a request; a redirect is an answer like any other. Throws `PmlError` for a refused address. */
export type Fetch = (url: string, options: FetchOptions) => Promise<Response>;
