/**
 * Watches which functions of this process run, by the engine's own counters.
 *
 * @module
 */

import inspector from "node:inspector";

/** A function of ours that ran. */
export interface Hop {
  /** Its name; empty for one without. */
  readonly name: string;
  /** The file, from the root of the project. */
  readonly file: string;
}

/** A function that ran, and where its text is. */
export interface Ran extends Hop {
  readonly scriptId: string;
  readonly start: number;
  readonly end: number;
}

interface Coverage {
  readonly result: readonly {
    readonly scriptId: string;
    readonly url: string;
    readonly functions: readonly {
      readonly functionName: string;
      readonly ranges: readonly {
        readonly startOffset: number;
        readonly endOffset: number;
        readonly count: number;
      }[];
    }[];
  }[];
}

const HEARD = "pmlHops";
/**
 * How long what goes on behind a call may take, on a busy machine, too. After so long, a call looks at
 * all that calls look at from time to time.
 */
const QUIET_MS = 1_000;

/** A session of the engine's inspector on this process. */
export class Session implements Disposable {
  readonly #session = new inspector.Session();
  readonly #root: string;

  /** Takes the URL of the folder that our files lie in. */
  constructor(root: string) {
    this.#root = root;
    this.#session.connect();
  }

  /** Runs work, and returns our functions that ran meanwhile. */
  async covered(work: () => Promise<unknown>): Promise<readonly Ran[]> {
    await this.#post("Profiler.enable");
    await this.#post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
    await quiet();
    await this.#post("Profiler.takePreciseCoverage");
    await work();
    const { result } = await this.#post("Profiler.takePreciseCoverage") as Coverage;
    await this.#post("Profiler.stopPreciseCoverage");
    return result.filter(({ url }) => url.startsWith(this.#root)).flatMap((script) =>
      script.functions.flatMap(({ functionName: name, ranges: [range] }): readonly Ran[] => {
        const { scriptId, url } = script;
        // What covers the whole file is the file being loaded.
        if (range === undefined || range.count === 0 || range.startOffset === 0) return [];
        const file = url.slice(this.#root.length);
        return [{ name, file, scriptId, start: range.startOffset, end: range.endOffset }];
      })
    );
  }

  /** Runs work, and returns when which of these functions was entered. */
  async traced(functions: readonly Ran[], work: () => Promise<unknown>): Promise<readonly Hop[]> {
    const heard: number[] = [];
    Reflect.set(globalThis, HEARD, heard);
    await this.#post("Debugger.enable");
    for (const [at, one] of functions.entries()) await this.#listen(at, one);
    // A child that is started ahead after the call before is not of this one.
    await quiet();
    heard.length = 0;
    await work();
    await this.#post("Debugger.disable");
    return heard.flatMap((at) => functions[at] ?? []);
  }

  [Symbol.dispose](): void {
    this.#session.disconnect();
  }

  /** Sets a breakpoint at the beginning of a function that never stops, and tells that it was met. */
  async #listen(at: number, { scriptId, start, end }: Ran): Promise<void> {
    const { scriptSource } = await this.#post("Debugger.getScriptSource", { scriptId }) as {
      readonly scriptSource: string;
    };
    const placeOf = (offset: number) => {
      const lines = scriptSource.slice(0, offset).split("\n");
      return { scriptId, lineNumber: lines.length - 1, columnNumber: lines.at(-1)?.length ?? 0 };
    };
    const { locations } = await this.#post("Debugger.getPossibleBreakpoints", {
      start: placeOf(start),
      end: placeOf(end),
      restrictToFunction: true,
    }) as { readonly locations: readonly object[] };
    const [location] = locations;
    const condition = `(globalThis.${HEARD}.push(${at}), false)`;
    // Two functions may begin at one place.
    await this.#post("Debugger.setBreakpoint", { location, condition }).catch(() => {});
  }

  #post(method: string, params: object = {}): Promise<unknown> {
    return new Promise((resolve, reject) =>
      this.#session.post(
        method,
        params,
        (error: Error | null, result: unknown) => error === null ? resolve(result) : reject(error),
      )
    );
  }
}

function quiet(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, QUIET_MS));
}
