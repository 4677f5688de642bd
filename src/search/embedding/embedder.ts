/**
 * Turns texts into vectors with a model. The model runs in a separate process, which is started
 * when it is needed and ended when it is idle.
 *
 * @module
 */

import { join } from "node:path";
import { ending } from "../../core/errors.ts";
import { unlessAborted } from "../../io/waiting.ts";
import { EmbedderChild, type EmbedderChildOptions, type TextVectors } from "./_embedder_child.ts";
import type { Log } from "../../audit/log.ts";
import type { GroupsOpener } from "../../sandbox/reaper.ts";
import type { TextEmbedder } from "../vectors.ts";
import type { EmbeddingModel } from "./embedding_model.ts";

/** A model, and the hash of its content. */
export interface HashedModel {
  readonly model: EmbeddingModel;
  readonly hash: string;
}

/** The owner of an embedder. `Meaning` implements it. */
export interface EmbedderOwner extends GroupsOpener {
  /** The PML home. */
  readonly home: string;
  readonly limits: { readonly startMs: number; readonly idleMs: number };
  readonly log: Pick<Log, "debug">;
  /** Returns the folder of the library, after its files and those of the model were checked. */
  libraryFor(model: HashedModel): Promise<string>;
}

/** Limits for tests; the defaults apply otherwise. */
export type EmbedderBounds = Pick<EmbedderChildOptions, "answerMs" | "spareBytes">;

/** Turns texts into vectors. Nothing is started before the first request. */
export class Embedder implements TextEmbedder, AsyncDisposable {
  readonly #model: HashedModel;
  readonly #owner: EmbedderOwner;
  readonly #bounds: EmbedderBounds;
  #starting: Promise<EmbedderChild> | undefined;
  #child: EmbedderChild | undefined;
  #count = 0;
  #idle: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Takes the model. Reads no files yet. */
  constructor(model: HashedModel, owner: EmbedderOwner, bounds: EmbedderBounds = {}) {
    this.#model = model;
    this.#owner = owner;
    this.#bounds = bounds;
  }

  /**
   * Returns a vector of length one for each text; undefined for a text without a vector. If
   * `signal` aborts, the call rejects and the work continues.
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
    this.#count++;
    clearTimeout(this.#idle);
    try {
      return await (await this.#running()).embed(texts);
    } finally {
      if (--this.#count === 0) this.#rest();
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
    const owner = this.#owner;
    const library = await owner.libraryFor(this.#model);
    const groups = await owner.groups();
    if (this.#isClosed) throw ending("embed");
    const since = performance.now();
    const child = new EmbedderChild({
      library,
      model: this.#model.model,
      groups,
      denoDir: join(owner.home, "embedder", "deno"),
      startMs: owner.limits.startMs,
      ...this.#bounds,
    });
    this.#child = child;
    try {
      await child.loaded();
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
    owner.log.debug(`The model was loaded in ${Math.round(performance.now() - since)} ms`);
    return child;
  }

  #rest(): void {
    if (this.#isClosed) return;
    this.#idle = setTimeout(() => {
      const child = this.#child;
      this.#child = this.#starting = undefined;
      void child?.[Symbol.asyncDispose]();
    }, this.#owner.limits.idleMs);
    // This timer does not keep PML running.
    Deno.unrefTimer(this.#idle as unknown as number);
  }
}
