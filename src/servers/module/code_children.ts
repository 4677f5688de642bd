/**
 * Keeps children for code. Nothing is granted to them, and each runs one piece of code in its life.
 *
 * @module
 */

import { Places } from "../../io/places.ts";
import { turn, unlessAborted } from "../../io/waiting.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { WarmChildren } from "./warm_child.ts";

/** The options of `CodeChildren`. */
export interface CodeChildrenOptions {
  /** Returns the most children at the same time, for code at one depth. */
  readonly most: () => number;
  /** Returns how long a warm child stays unused, in milliseconds. */
  readonly idleMs: () => number;
  /** Returns what children are started with. Only a child of the same key can be used. */
  readonly key: () => string;
  /** Starts a child that takes this place. */
  readonly open: (place: Disposable | undefined) => Promise<Sandbox>;
  /** Prepares a child that waits for its code. */
  readonly warmUp: (child: Sandbox) => Promise<void>;
}

/** Whom a child is for. */
export interface CodeChildUse {
  /** How many capabilities wait for the code. */
  readonly depth: number;
  /** Gives up to wait for the child. */
  readonly signal: AbortSignal;
}

/** Gives each piece of code a child of its own. */
export class CodeChildren implements AsyncDisposable {
  readonly #options: CodeChildrenOptions;
  readonly #warm: WarmChildren<Sandbox>;
  /**
   * The places by depth. Code waits for the tools that it calls, so it must not take the places of
   * their children, nor of the code that they run.
   */
  readonly #places = new Map<number, Places>();
  readonly #ends = new Set<Promise<void>>();
  #isClosed = false;

  /** Starts nothing. */
  constructor(options: CodeChildrenOptions) {
    this.#options = options;
    this.#warm = new WarmChildren(options.idleMs);
  }

  /** Uses a child, which then ends. */
  async use<T>(
    { depth, signal }: CodeChildUse,
    work: (child: Sandbox) => Promise<T>,
  ): Promise<T> {
    const key = this.#options.key();
    const open = async () => await this.#options.open(await this.#place(depth, signal));
    const opening = this.#warm.take(key, open);
    try {
      return await work(await unlessAborted(opening, signal));
    } finally {
      this.#end(opening);
      if (!this.#isClosed) this.#warm.keep(key, () => this.#openWarm());
    }
  }

  /** Has a child started for code that is expected: soon, or at once for code that is here. */
  ahead(options?: { readonly now: true }): void {
    if (!this.#isClosed) {
      this.#warm.keep(this.#options.key(), () => this.#openWarm(options?.now), options);
    }
  }

  /** Ends every child. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#warm[Symbol.asyncDispose]();
    await Promise.all(this.#ends);
  }

  async #openWarm(isAwaited = false): Promise<Sandbox> {
    const child = await this.#options.open(this.#placesAt(0).spare());
    if (isAwaited) return child;
    try {
      await this.#options.warmUp(child);
      return child;
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Ends a child, also one that starts late. Only the end of PML waits for that. */
  #end(opening: Promise<Sandbox>): void {
    // The answer goes out first.
    const end = Promise.all([opening.catch(() => undefined), turn()])
      .then(([child]) => child?.[Symbol.asyncDispose]())
      .finally(() => this.#ends.delete(end));
    this.#ends.add(end);
  }

  async #place(depth: number, signal: AbortSignal): Promise<Disposable> {
    const places = this.#placesAt(depth);
    const key = crypto.randomUUID();
    const taking = places.take(key);
    try {
      return await unlessAborted(taking, signal);
    } catch (error) {
      if (!places.leave(key)) taking.then((place) => place[Symbol.dispose](), () => {});
      throw error;
    }
  }

  #placesAt(depth: number): Places {
    const known = this.#places.get(depth);
    if (known !== undefined) return known;
    const places = new Places({
      most: this.#options.most,
      ending: () => this.#ends.size,
      free: () => this.#warm.giveUp(),
    });
    this.#places.set(depth, places);
    return places;
  }
}
