/**
 * A server that a connection leads to.
 *
 * @module
 */

import type { OpenWire } from "./wire.ts";

/** A server, and how to reach it. */
export interface UpstreamServer {
  readonly name: string;
  /** The only tools that it may show, if they are listed. */
  readonly tools: readonly string[] | undefined;
  /** Its definition without the values of variables. */
  readonly definition: unknown;
  /** The values of its address and headers, if it has an address. */
  readonly values?: unknown;
  /** Whether its lists are kept in files for other processes. */
  readonly isKept: boolean;
  /** Whether a connection may take long to fail, so that failures are remembered. */
  readonly isRemote?: boolean;
  /** Returns the server's own name of a tool, if it differs. */
  readonly toolName?: (tool: string) => string;
  /** Returns everything that a connection depends on. If it changes, another is opened. */
  readonly version: () => string;
  /** Prepares a connection. `closing` aborts that. */
  readonly prepare: (closing: AbortSignal) => Promise<OpenWire>;
}
