/**
 * The common parts of all commands that serve MCP.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { asPmlError } from "../core/errors.ts";
import { commandProcess } from "./command_process.ts";

/**
 * Passes unhandled promise rejections to `tell`. Otherwise they would end the process with all its
 * calls.
 */
export function caught(tell: (error: Error) => void): Disposable {
  const onLost = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    tell(asPmlError(event.reason));
  };
  return commandProcess().listenForRejections(onLost);
}

/** Logs an error that belongs to no request. */
export function logError(app: App, error: Error): void {
  // A client that closes its end is no failure.
  if (error instanceof Deno.errors.BrokenPipe) app.log.debug("The client closed its end");
  else app.log.warn(error.message);
}
