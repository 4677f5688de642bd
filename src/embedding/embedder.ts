/**
 * Makes vectors of texts with a model, in a process of its own that is started when it is needed and
 * ended when it is not.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { unlessAborted } from "../io/waiting.ts";
import { EmbedderChild, type EmbedderChildOptions, type TextVectors } from "./_embedder_child.ts";
import type { EmbeddingModel } from "./embedding_model.ts";

/** What embedding needs from outside. */
export interface EmbedderOptions {
  readonly home: string;
  readonly model: EmbeddingModel;
  /** Gives the folder of the library, whose files were looked at just now. */
  readonly library: () => Promise<string>;
  readonly limits: () => { readonly startMs: number; readonly idleMs: number };
  readonly groups: () => Promise<EmbedderChildOptions["groups"]>;
  /** What one process may take, where it is not the usual. */
  readonly bounds?: Pick<EmbedderChildOptions, "answerMs" | "spareBytes">;
  readonly onLog: (text: string) => void;
}

/** Makes vectors; nothing is started before the first is wanted. */
export class Embedder implements AsyncDisposable {
  readonly #options: EmbedderOptions;
  #starting: Promise<EmbedderChild> | undefined;
  #child: EmbedderChild | undefined;
  #asked = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Takes the model and the library. */
  constructor(options: EmbedderOptions) {
    this.#options = options;
  }

  /**
   * Gives a vector of length one for each text, and none for one that the model makes nothing of;
   * who waits no longer lets the work go on.
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
    // What was just starting sees that it is closed, and fails.
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
    if (this.#isClosed) throw new PmlError("CANCELLED", "Cannot embed: PML is ending");
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
    // Nothing is kept waiting for this.
    Deno.unrefTimer(this.#idle as unknown as number);
  }
}
