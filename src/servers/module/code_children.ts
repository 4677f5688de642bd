/**
 * Starts children without grants for code. Each child runs one piece of code, and then ends.
 *
 * @module
 */

import { endingError } from "../../core/errors.ts";
import { Semaphore, type SemaphoreOwner } from "../../io/semaphore.ts";
import { unlessAborted, yieldTurn } from "../../io/waiting.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { ChildStarter } from "./child_starter.ts";
import type { ModuleHost } from "./module_host.ts";
import { WarmChildren } from "./warm_child.ts";

/** How long a child may take to prepare for its code, in milliseconds. */
const WARM_UP_MS = 10_000;
/** The name in messages of the code that `execute_code` runs. */
const CODE = "execute_code";

/** The options of a use of a child. */
export interface CodeChildUse {
  /** How many capabilities wait for this code: code can call a capability, whose code runs then. */
  readonly depth: number;
  /** Stops waiting for the child. */
  readonly signal: AbortSignal;
}

/** Runs each piece of code in its own child. */
export class CodeChildren implements SemaphoreOwner, AsyncDisposable {
  readonly #starter: ChildStarter;
  readonly #host: ModuleHost;
  readonly #warm: WarmChildren<Sandbox>;
  /**
   * The limits of children, one for each depth. Code waits for the code of capabilities that it
   * calls. With one limit for all depths, waiting code could use all places, and no code would end.
   */
  readonly #semaphores = new Map<number, Semaphore>();
  readonly #ends = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  /** Starts nothing. */
  constructor(starter: ChildStarter, host: ModuleHost) {
    this.#starter = starter;
    this.#host = host;
    this.#warm = new WarmChildren(() => host.limits.idleMs);
  }

  /** The maximum number of children at the same time, for code at one depth. */
  get maxPlaces(): number {
    return this.#host.limits.children;
  }

  /** The number of children that are ending. */
  get endingCount(): number {
    return this.#ends.size;
  }

  /** Closes the child that waits for code. Returns whether there was one. */
  closeUnused(): boolean {
    return this.#warm.closeWarm();
  }

  /** Runs `work` with a child, which ends afterwards. */
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
  prepareNext(options?: { readonly now: true }): void {
    if (!this.#closing.signal.aborted) {
      this.#warm.keep(this.#key, () => this.#openWarm(options?.now), options);
    }
  }

  /** Ends every child. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(endingError("start the module"));
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
    const child = await this.#open(this.#semaphoreAt(0).tryAcquire());
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
    // Yields one turn, so that the answer is sent first.
    const end = Promise.all([opening.catch(() => undefined), yieldTurn()])
      .then(([child]) => child?.[Symbol.asyncDispose]())
      .finally(() => this.#ends.delete(end));
    this.#ends.add(end);
  }

  async #place(depth: number, signal: AbortSignal): Promise<Disposable> {
    const semaphore = this.#semaphoreAt(depth);
    const key = crypto.randomUUID();
    const taking = semaphore.acquire(key);
    try {
      return await unlessAborted(taking, signal);
    } catch (error) {
      if (!semaphore.cancel(key)) taking.then((place) => place[Symbol.dispose](), () => {});
      throw error;
    }
  }

  #semaphoreAt(depth: number): Semaphore {
    const existing = this.#semaphores.get(depth);
    if (existing !== undefined) return existing;
    const semaphore = new Semaphore(this);
    this.#semaphores.set(depth, semaphore);
    return semaphore;
  }
}
