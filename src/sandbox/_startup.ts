/**
 * The way of a child from its start to its module: first it proves that it is closed, then it loads.
 *
 * @module
 */

import { PmlError, shownPlace } from "../core/errors.ts";
import { withRoundedNumbers } from "../core/exact_number.ts";
import { type Json, objectOf, quoted } from "../core/json.ts";
import { onAbort } from "../io/waiting.ts";
import { failureFrom } from "./_failure.ts";
import { heldBy } from "./_os_layer.ts";
import type { Layer } from "./layer.ts";
import { plainJson } from "./_plain.ts";
import { reasonOf, unusable, valueOf } from "./_said.ts";
import type { Frame } from "./_wire.ts";

/** How far a child has come. */
type Phase = "testing" | "blank" | "loading" | "ready";

/** Follows a child till its module is loaded, and keeps what both said of themselves. */
export class Startup {
  readonly #layer: Layer | undefined;
  #next = Promise.withResolvers<void>();
  /** How far the child has come. */
  phase: Phase = "testing";
  /** The name of the server whose module it is. */
  name = "a module";
  #file = "";
  /** The names of the functions that the module exports. */
  exports: readonly string[] = [];
  /** What the module says of itself in `__meta__`, as plain JSON; undefined if nothing. */
  meta: unknown;
  /** What the system holds the child with: `landlock 7`, `bubblewrap 0.8.0`, or why nothing. */
  confined = "";

  /** Takes what the system was to hold the child with. */
  constructor(layer: Layer | undefined) {
    this.#layer = layer;
  }

  /** Begins to load a module. */
  load({ name, file = name }: { readonly name: string; readonly file?: string | undefined }): void {
    this.name = name;
    this.#file = file;
    this.phase = "loading";
    this.#next = Promise.withResolvers();
  }

  /** Waits until the child has come so far; throws why it never will, or why nobody waits. */
  async reached(phase: "blank" | "ready", signal: AbortSignal | undefined): Promise<void> {
    const { promise, reject } = this.#next;
    using _ = signal && onAbort(signal, () => reject(reasonOf(signal)));
    await promise;
    this.phase = phase;
  }

  /** Ends it: the child comes no further. */
  fail(error: unknown): void {
    this.#next.reject(error);
  }

  /** Takes what the child says on its way; gives why it must end, if it must. */
  take(frame: Frame): string | undefined {
    const value = valueOf(frame);
    if (frame.type === "confined") return this.#confine(heldBy(this.#layer, String(value)));
    if (frame.type === "refused") return this.#refuse(String(value));
    if (frame.type === "tested" && this.phase === "testing") {
      const isClosed = Array.isArray(value) && value.length === 0;
      if (!isClosed) return this.#refuse(`its module thread is open: ${String(value)}`);
      this.#next.resolve();
    } else if (this.phase === "loading") {
      if (frame.type === "unloaded") this.fail(this.#unloaded(value));
      if (frame.type === "ready") this.#ready(frame);
    }
    return undefined;
  }

  #confine(held: string | PmlError): string | undefined {
    if (typeof held !== "string") return this.#refuse(held.message, held);
    this.confined = held;
    return undefined;
  }

  #refuse(why: string, error = unusable(why)): string {
    this.fail(error);
    return why;
  }

  #ready(frame: Frame): void {
    try {
      const said = plainJson(frame.json, `"__meta__" of ${quoted(this.name)}`);
      const { exports, meta } = objectOf(said);
      this.exports = Array.isArray(exports) ? exports.map(String) : [];
      this.meta = withRoundedNumbers(meta);
      this.#next.resolve();
    } catch (error) {
      this.fail(error);
    }
  }

  #unloaded(value: unknown): PmlError {
    const found = failureFrom(value as Json); // parsed JSON
    if (found instanceof PmlError) return found;
    const [, why, line, column] =
      /SyntaxError: ([^\n]*?)(?: at blob:|\n)[^]*?(\d+):(\d+)$/.exec(found.message) ?? [];
    const [what, hint] = why === undefined
      ? [`${found.name}: ${found.message}`, "Correct the module"]
      : [`syntax error: ${why}`, `Fix the syntax error in line ${line}`];
    const at = quoted(shownPlace(this.#file, { line, column }), 300);
    return new PmlError("SANDBOX_CRASHED", `Cannot load the module ${at}: ${what}`, {
      hint: `${hint}, then call again`,
      detail: { reason: "load" },
    });
  }
}
