/**
 * Turns texts into vectors with a model. The model runs in a separate process, which is started
 * when a text comes and ended when it is idle.
 *
 * @module
 */

import { join } from "node:path";
import { endingError } from "../../core/errors.ts";
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
  /** Checks the files of the library and of the model. Returns the folder of the library. */
  libraryFor(model: HashedModel): Promise<string>;
}

/** Limits that tests change. */
export type EmbedderBounds = Pick<EmbedderChildOptions, "answerMs" | "spareBytes">;

/** Turns texts into vectors. Nothing is started before the first request. */
export class Embedder implements TextEmbedder, AsyncDisposable {
  readonly #model: HashedModel;
  readonly #owner: EmbedderOwner;
  readonly #bounds: EmbedderBounds;
  #starting: Promise<EmbedderChild> | undefined;
  #child: EmbedderChild | undefined;
  #openCallCount = 0;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  /** Creates an embedder. Reads no files yet. */
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
    clearTimeout(this.#idleTimer);
    await this.#child?.[Symbol.asyncDispose]();
    // A start that is still running fails, because the embedder is closed.
    await this.#starting?.catch(() => {});
  }

  async #embed(texts: readonly string[]): Promise<TextVectors> {
    this.#openCallCount++;
    clearTimeout(this.#idleTimer);
    try {
      return await (await this.#openChild()).embed(texts);
    } finally {
      if (--this.#openCallCount === 0) this.#scheduleEnd();
    }
  }

  #openChild(): Promise<EmbedderChild> {
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
    if (this.#isClosed) throw endingError("embed");
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

  #scheduleEnd(): void {
    if (this.#isClosed) return;
    this.#idleTimer = setTimeout(() => {
      const child = this.#child;
      this.#child = this.#starting = undefined;
      void child?.[Symbol.asyncDispose]();
    }, this.#owner.limits.idleMs);
    // This timer does not keep PML running.
    Deno.unrefTimer(this.#idleTimer as unknown as number);
  }
}
