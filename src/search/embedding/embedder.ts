/**
 * Turns texts into vectors with a model. The model runs in a process of its own, which is started
 * when it is needed and ended when it is idle.
 *
 * @module
 */

import { join } from "node:path";
import { ending } from "../../core/errors.ts";
import { unlessAborted } from "../../io/waiting.ts";
import { EmbedderChild, type EmbedderChildOptions, type TextVectors } from "./_embedder_child.ts";
import type { EmbeddingModel } from "./embedding_model.ts";

/** The options of an embedder. */
export interface EmbedderOptions {
  readonly home: string;
  readonly model: EmbeddingModel;
  /** Returns the folder of the library, after its files were checked. */
  readonly library: () => Promise<string>;
  readonly limits: () => { readonly startMs: number; readonly idleMs: number };
  readonly groups: () => Promise<EmbedderChildOptions["groups"]>;
  /** Limits for tests; the defaults apply otherwise. */
  readonly bounds?: Pick<EmbedderChildOptions, "answerMs" | "spareBytes">;
  readonly onLog: (text: string) => void;
}

/** Turns texts into vectors. Nothing is started before the first request. */
export class Embedder implements AsyncDisposable {
  readonly #options: EmbedderOptions;
  #starting: Promise<EmbedderChild> | undefined;
  #child: EmbedderChild | undefined;
  #asked = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Takes the options. */
  constructor(options: EmbedderOptions) {
    this.#options = options;
  }

  /**
   * Returns a vector of length one for each text, or undefined if the model gives none. If `signal`
   * aborts, the work goes on without the caller.
   */
  async embed(texts: readonly string[], signal: AbortSignal): Promise<TextVectors> {
    signal.throwIfAborted();
    return await unlessAborted(this.#embed(texts), signal);
  }

  /** Ends the process. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#idle);
    await this.#child?.[Symbol.asyncDispose]();
    // A start that is still running sees that the embedder is closed, and fails.
    await this.#starting?.catch(() => {});
  }

  async #embed(texts: readonly string[]): Promise<TextVectors> {
    this.#asked++;
    clearTimeout(this.#idle);
    try {
      return await (await this.#running()).embed(texts);
    } finally {
      if (--this.#asked === 0) this.#rest();
    }
  }

  #running(): Promise<EmbedderChild> {
    if (this.#child?.isOver === true) this.#child = this.#starting = undefined;
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  async #start(): Promise<EmbedderChild> {
    const { home, model, limits, onLog, bounds } = this.#options;
    const library = await this.#options.library();
    const groups = await this.#options.groups();
    if (this.#isClosed) throw ending("embed");
    const since = performance.now();
    const child = new EmbedderChild({
      library,
      model,
      groups,
      denoDir: join(home, "embedder", "deno"),
      startMs: limits().startMs,
      ...bounds,
    });
    this.#child = child;
    try {
      await child.loaded();
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
    onLog(`The model was loaded in ${Math.round(performance.now() - since)} ms`);
    return child;
  }

  #rest(): void {
    if (this.#isClosed) return;
    this.#idle = setTimeout(() => {
      const child = this.#child;
      this.#child = this.#starting = undefined;
      void child?.[Symbol.asyncDispose]();
    }, this.#options.limits().idleMs);
    // This timer does not keep PML running.
    Deno.unrefTimer(this.#idle as unknown as number);
  }
}
