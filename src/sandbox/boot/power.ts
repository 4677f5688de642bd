/**
 * What the host thread does for a module beside files: requests that take time.
 *
 * @module
 */

/** What a request that takes time has at hand. */
export interface Talk {
  /** Aborts when the call is given up, or the module lets go of the request. */
  readonly signal: AbortSignal;
  /** Tells the module something before the answer; plain data that can be cloned. */
  say(value: unknown): void;
}

/**
 * Does one request on what the Worker sent for it, which can be anything: each looks at what it
 * uses. What it gives is cloned to the Worker; what it throws crosses with its name and message.
 */
export type Power = (args: readonly unknown[], talk: Talk) => unknown;
