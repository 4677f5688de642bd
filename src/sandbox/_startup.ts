/**
 * The start of a child: it first passes its self-test and then loads its module.
 *
 * @module
 */

import { PmlError, shownPlace } from "../core/errors.ts";
import { withRoundedNumbers } from "../core/exact_number.ts";
import { type Json, objectOf, quoted } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";
import { failureFrom } from "./_failure.ts";
import { confinementOf } from "./_os_layer.ts";
import type { Layer } from "./layer.ts";
import { plainJson } from "./_plain_json.ts";
import { reasonOf, sandboxUnusable, valueOf } from "./_child_frames.ts";
import type { Frame } from "./_wire.ts";

/**
 * The phase of a start: the self-test, no module yet, the load of the module, and a loaded module.
 */
type Phase = "testing" | "blank" | "loading" | "ready";

/** Tracks the start of a child until its module is loaded, and stores the reports of the child. */
export class Startup {
  readonly #layer: Layer | undefined;
  /** Resolves when the next phase is reached; rejects if the start fails. */
  #next = Promise.withResolvers<void>();
  /** The current phase. */
  phase: Phase = "testing";
  /** The name of the module's server. */
  name = "a module";
  #file = "";
  /** The names of the functions that the module exports. */
  exports: readonly string[] = [];
  /** The module's `__meta__` as plain JSON; undefined if it has none. */
  meta: unknown;
  /** The layer that confines the child (`landlock 7`, `bubblewrap 0.8.0`), or why none does. */
  confined = "";

  /** Creates an instance with the layer that should confine the child. */
  constructor(layer: Layer | undefined) {
    this.#layer = layer;
  }

  /** Starts the phase in which the module loads. */
  load({ name, file = name }: { readonly name: string; readonly file?: string | undefined }): void {
    this.name = name;
    this.#file = file;
    this.phase = "loading";
    this.#next = Promise.withResolvers();
  }

  /** Waits for a phase. Throws if the start fails or the signal aborts first. */
  async waitFor(phase: "blank" | "ready", signal: AbortSignal | undefined): Promise<void> {
    const { promise, reject } = this.#next;
    using _ = signal && onAbort(signal, () => reject(reasonOf(signal)));
    await promise;
    this.phase = phase;
  }

  /** Rejects the start: the child will not reach the next phase. */
  fail(error: unknown): void {
    this.#next.reject(error);
  }

  /** Handles a frame of the child. Returns why the child must end, or undefined. */
  handleFrame(frame: Frame): string | undefined {
    const value = valueOf(frame);
    if (frame.type === "confined") return this.#confine(confinementOf(this.#layer, String(value)));
    if (frame.type === "refused") return this.#refuse(String(value));
    if (frame.type === "tested" && this.phase === "testing") {
      const isClosed = Array.isArray(value) && value.length === 0;
      if (!isClosed) {
        return this.#refuse(`the self-test of the module thread failed: ${String(value)}`);
      }
      this.#next.resolve();
    } else if (this.phase === "loading") {
      if (frame.type === "unloaded") this.fail(this.#loadError(value));
      if (frame.type === "ready") this.#ready(frame);
    }
    return undefined;
  }

  #confine(confinement: string | PmlError): string | undefined {
    if (typeof confinement !== "string") return this.#refuse(confinement.message, confinement);
    this.confined = confinement;
    return undefined;
  }

  #refuse(why: string, error = sandboxUnusable(why)): string {
    this.fail(error);
    return why;
  }

  #ready(frame: Frame): void {
    try {
      const start = plainJson(frame.json, `"__meta__" of ${quoted(this.name)}`);
      const { exports, meta } = objectOf(start);
      this.exports = Array.isArray(exports) ? exports.map(String) : [];
      this.meta = withRoundedNumbers(meta);
      this.#next.resolve();
    } catch (error) {
      this.fail(error);
    }
  }

  #loadError(value: unknown): PmlError {
    const failure = failureFrom(value as Json); // parsed JSON
    if (failure instanceof PmlError) return failure;
    const [, why, line, column] =
      /SyntaxError: ([^\n]*?)(?: at blob:|\n)[^]*?(\d+):(\d+)$/.exec(failure.message) ?? [];
    const [what, hint] = why === undefined
      ? [`${failure.name}: ${failure.message}`, "Correct the module"]
      : [`syntax error: ${why}`, `Fix the syntax error in line ${line}`];
    const file = quoted(shownPlace(this.#file, { line, column }), 300);
    return new PmlError("SANDBOX_CRASHED", `Cannot load the module ${file}: ${what}`, {
      hint: `${hint}, then call again`,
      detail: { reason: "load" },
    });
  }
}
