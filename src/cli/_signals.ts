/**
 * Ends a command cleanly when a signal comes.
 *
 * @module
 */

import { commandProcess } from "./command_process.ts";

const EXIT_CODES = { SIGBREAK: 149, SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
type EndSignal = keyof typeof EXIT_CODES;

// Windows reports only Ctrl-C, Ctrl-Break and the closing of the console.
const END_SIGNALS: readonly EndSignal[] = Deno.build.os === "windows"
  ? ["SIGINT", "SIGBREAK", "SIGHUP"]
  : ["SIGHUP", "SIGINT", "SIGTERM"];

/** Aborts at the first signal. The second signal ends the process at once. */
export class Signals implements Disposable {
  readonly #process = commandProcess();
  readonly #abort = new AbortController();
  readonly #listeners = END_SIGNALS.map((name) => [name, () => this.#end(name)] as const);
  #exitCode: number | undefined;

  /** Listens until it is disposed or a signal comes. */
  constructor() {
    for (const [name, listener] of this.#listeners) this.#process.addSignalListener(name, listener);
  }

  /** Aborts when a signal comes. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The exit code of the signal that came; undefined before one came. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Stops listening. */
  [Symbol.dispose](): void {
    for (const [name, listener] of this.#listeners) {
      this.#process.removeSignalListener(name, listener);
    }
  }

  #end(name: EndSignal): void {
    this.#exitCode = EXIT_CODES[name];
    // Without a listener, a second signal ends the process.
    this[Symbol.dispose]();
    this.#abort.abort();
  }
}
