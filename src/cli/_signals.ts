/**
 * The signals that end a command in good order.
 *
 * @module
 */

const EXIT_CODES = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 } as const;
type Ending = keyof typeof EXIT_CODES;

// Windows knows no more than these two.
const ENDINGS: readonly Ending[] = Deno.build.os === "windows"
  ? ["SIGINT", "SIGHUP"]
  : ["SIGHUP", "SIGINT", "SIGTERM"];

/** Aborts at the first signal; the next one ends the process the hard way. */
export class Signals implements Disposable {
  readonly #abort = new AbortController();
  readonly #listeners = ENDINGS.map((name) => [name, () => this.#end(name)] as const);
  #exitCode: number | undefined;

  /** Listens until it is disposed or a signal came. */
  constructor() {
    for (const [name, listener] of this.#listeners) Deno.addSignalListener(name, listener);
  }

  /** Aborts when a signal comes. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** The exit code that the signal stands for, or nothing while none came. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Stops listening. */
  [Symbol.dispose](): void {
    for (const [name, listener] of this.#listeners) Deno.removeSignalListener(name, listener);
  }

  #end(name: Ending): void {
    this.#exitCode = EXIT_CODES[name];
    // A second signal then does what it does to any process.
    this[Symbol.dispose]();
    this.#abort.abort();
  }
}
