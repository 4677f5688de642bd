/**
 * A request that takes time, which the host thread does for a module: everything but files.
 *
 * @module
 */

/** What a request can use while it runs. */
export interface RequestContext {
  /** Aborts when the call is cancelled, or when the module stops waiting for the request. */
  readonly signal: AbortSignal;
  /** Sends the module a message before the answer. It must be plain data that can be cloned. */
  say(value: unknown): void;
}

/**
 * Runs one request. The Worker may send anything as arguments, so each request checks what it uses.
 * The result is cloned to the Worker; an error is sent with its name and message.
 */
export type HostFunction = (args: readonly unknown[], talk: RequestContext) => unknown;
