/**
 * The common parts of all commands that serve MCP.
 *
 * @module
 */

import type { App } from "../app/app.ts";
import type { ShownHost } from "../control/shown_process.ts";
import { asPmlError, messageOf } from "../core/errors.ts";
import { pause, whenAborted } from "../io/waiting.ts";
import { commandProcess } from "./command_process.ts";

/**
 * Passes unhandled promise rejections to `onError`. Otherwise a rejection would end the process with
 * all its calls.
 */
export function catchRejections(onError: (error: Error) => void): Disposable {
  const listener = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    onError(asPmlError(event.reason));
  };
  return commandProcess().listenForRejections(listener);
}

/** Logs an error that belongs to no request. */
export function logError(app: App, error: Error): void {
  // A client that closes its end is not a failure.
  if (error instanceof Deno.errors.BrokenPipe) app.log.debug("The client closed its end");
  else app.log.warn(error.message);
}

/** How long after its start or its first answer a process is shown to pages, in milliseconds. */
const SHOW_MS = 300;

/**
 * Lets `pml page` find this process until the result is disposed. The code is loaded after the first
 * answers, so that no client waits for it.
 */
export function showProcess(host: ShownHost): AsyncDisposable {
  const closing = new AbortController();
  const opening = openWhenAnswered(host, closing.signal).catch((error) => {
    host.app.log.debug(`Cannot show this process on the page: ${messageOf(error)}`);
  });
  return {
    [Symbol.asyncDispose]: async () => {
      closing.abort();
      await (await opening)?.[Symbol.asyncDispose]();
    },
  };
}

async function openWhenAnswered(host: ShownHost, closing: AbortSignal) {
  // A client waits for the start of `pml stdio`, so its first answer comes before this work.
  if (host.command === "stdio") {
    await Promise.race([host.app.firstAnswer.promise, whenAborted(closing)]);
  }
  if (!closing.aborted) await pause(SHOW_MS, closing);
  if (closing.aborted) return undefined;
  return await (await import("../control/shown_process.ts")).ShownProcess.open(host);
}
