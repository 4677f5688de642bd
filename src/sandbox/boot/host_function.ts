/**
 * An asynchronous request of a module to the host thread. Only requests for files can be
 * synchronous.
 *
 * @module
 */

/** The signal and the messages of one running request. */
export interface HostRequestContext {
  /** Aborts when the call is cancelled, or when the module stops waiting for the request. */
  readonly signal: AbortSignal;
  /** Sends the module a message before the answer. It must be plain data that can be cloned. */
  say(value: unknown): void;
}

/**
 * Runs one request. The Worker may send any arguments, so each request checks them. The result is
 * cloned to the Worker; an error is sent with its name and message.
 */
export type HostFunction = (args: readonly unknown[], context: HostRequestContext) => unknown;
