/**
 * Keeps children for code. Nothing is granted to them, and each runs one piece of code in its life.
 *
 * @module
 */

import { ending } from "../../core/errors.ts";
import { type PlaceOwner, Places } from "../../io/places.ts";
import { unlessAborted, yieldTurn } from "../../io/waiting.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { ChildStarter } from "./child_starter.ts";
import type { ModuleHost } from "./module_host.ts";
import { WarmChildren } from "./warm_child.ts";

/** How long a child may take to prepare for its code. */
const WARM_UP_MS = 10_000;
/** The name of the code of `execute_code` in messages. */
const CODE = "execute_code";

/** The use of a child. */
export interface CodeChildUse {
  /** How many capabilities wait for the code. */
  readonly depth: number;
  /** Stops waiting for the child. */
  readonly signal: AbortSignal;
}

/** Runs each piece of code in its own child. */
export class CodeChildren implements PlaceOwner, AsyncDisposable {
  readonly #starter: ChildStarter;
  readonly #host: ModuleHost;
  readonly #warm: WarmChildren<Sandbox>;
  /**
   * The places by depth. Code waits for the tools that it calls, so it must not take the places of
   * their children, nor of the code that they run.
   */
  readonly #places = new Map<number, Places>();
  readonly #ends = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  /** Starts nothing. */
  constructor(starter: ChildStarter, host: ModuleHost) {
    this.#starter = starter;
    this.#host = host;
    this.#warm = new WarmChildren(() => host.limits.idleMs);
  }

  /** The maximum number of children at the same time, for code at one depth. */
  get mostPlaces(): number {
    return this.#host.limits.children;
  }

  /** How many children are about to end. */
  get ending(): number {
    return this.#ends.size;
  }

  /** Closes the child that waits for code. Returns whether there was one. */
  giveUp(): boolean {
    return this.#warm.giveUp();
  }

  /** Uses a child, which then ends. */
  async use<T>(
    { depth, signal }: CodeChildUse,
    work: (child: Sandbox) => Promise<T>,
  ): Promise<T> {
    const key = this.#key;
    const open = async () => await this.#open(await this.#place(depth, signal));
    const opening = this.#warm.take(key, open);
    try {
      return await work(await unlessAborted(opening, signal));
    } finally {
      this.#end(opening);
      if (!this.#closing.signal.aborted) this.#warm.keep(key, () => this.#openWarm());
    }
  }

  /** Starts a child for the next code, after a short delay or, with `now`, immediately. */
  ahead(options?: { readonly now: true }): void {
    if (!this.#closing.signal.aborted) {
      this.#warm.keep(this.#key, () => this.#openWarm(options?.now), options);
    }
  }

  /** Ends every child. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(ending("start the module"));
    await this.#warm[Symbol.asyncDispose]();
    await Promise.all(this.#ends);
  }

  /** The key of the options of children. Only a child of the same key can be used. */
  get #key(): string {
    const { children, closedOptions } = this.#starter;
    return children.warmKeyOf(closedOptions);
  }

  async #open(place: Disposable | undefined): Promise<Sandbox> {
    const { CODE_MODULE: code } = await import("../../sandbox/code_module.ts");
    return await this.#starter.openClosed({ name: CODE, code }, place);
  }

  async #openWarm(isAwaited = false): Promise<Sandbox> {
    const child = await this.#open(this.#placesAt(0).spare());
    if (isAwaited) return child;
    try {
      const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(WARM_UP_MS)]);
      await child.call({ fn: "warm", arguments: {}, signal });
      return child;
    } catch (error) {
      await child[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** Ends a child, also a child that is still starting. Only the end of PML waits for that. */
  #end(opening: Promise<Sandbox>): void {
    // The answer is sent first.
    const end = Promise.all([opening.catch(() => undefined), yieldTurn()])
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
    const existingPlaces = this.#places.get(depth);
    if (existingPlaces !== undefined) return existingPlaces;
    const places = new Places(this);
    this.#places.set(depth, places);
    return places;
  }
}
