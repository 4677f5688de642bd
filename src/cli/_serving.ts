/**
 * What all commands that serve MCP have in common.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import { asPmlError } from "../core/errors.ts";

/**
 * Passes promise rejections that nobody handled to `tell`. Otherwise they would end the process
 * with all its calls.
 */
export function caught(tell: (error: Error) => void): Disposable {
  const onLost = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    tell(asPmlError(event.reason));
  };
  globalThis.addEventListener("unhandledrejection", onLost);
  return {
    [Symbol.dispose]: () => globalThis.removeEventListener("unhandledrejection", onLost),
  };
}

/** Logs how this process serves, and what is wrong with the configuration. */
export function logStart(app: App, on: string): void {
  const { workspace, gateway, warnings, ignored, problem } = app.config();
  for (const warning of warnings) app.log.warn(warning);
  if (ignored.length > 0) {
    app.log.warn("The workspace file is not trusted: run `pml trust`", { ignored });
  }
  // The server starts with a broken configuration, too, and reports the problem in each answer.
  if (problem !== undefined) app.log.error(`${problem.code}: ${problem.message}`);
  app.log.info(`Serving on ${on}`, { workspace, exposure: gateway.exposure });
}

/** Logs an error that belongs to no request. */
export function logError(app: App, error: Error): void {
  // A client that closes its end is no failure.
  if (error instanceof Deno.errors.BrokenPipe) app.log.debug("The client closed its end");
  else app.log.warn(error.message);
}
