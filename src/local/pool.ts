/**
 * Keeps one running thing per key: started once, shared, given up when idle or when others are
 * used more, started anew when it died, and not too often where it always dies.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";

/** What the pool keeps: something that can die and must be closed. */
export interface Living extends AsyncDisposable {
  readonly alive: boolean;
  /** How many uses have not stopped yet, those that were given up among them. */
  readonly pending: number;
}

/** When the pool gives things up. */
export interface PoolLimits {
  /** After how many milliseconds without a use. */
  readonly idleMs: number;
  /** How many unused things it keeps. */
  readonly idleChildren: number;
}

/** How long a thing that is no longer used may take to stop what was given up. */
const RETIRED_MS = 1_000;
/** How many may die in a row without one good use before the next start has to wait. */
const DEATHS = 5;
const WAIT_MS = 500;
const WAIT_MAX_MS = 30_000;

interface Slot<T extends Living> {
  readonly starting: Promise<T>;
  users: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  living: T | undefined;
  good: boolean;
}

interface Deaths {
  readonly count: number;
  readonly at: number;
}

/** Shares living things by key. */
export class Pool<T extends Living> implements AsyncDisposable {
  readonly #slots = new Map<string, Slot<T>>();
  readonly #retired = new Set<Slot<T>>();
  readonly #deaths = new Map<string, Deaths>();
  readonly #limits: () => PoolLimits;
  readonly #now: () => number;

  /** Makes an empty pool. */
  constructor(limits: () => PoolLimits, now: () => number = Date.now) {
    this.#limits = limits;
    this.#now = now;
  }

  /** Runs `use` with the living thing of a key, starting it if there is none. */
  async use<R>(
    key: string,
    options: { readonly start: () => Promise<T>; readonly use: (living: T) => Promise<R> },
  ): Promise<R> {
    const slot = this.#take(key, options.start);
    // Counted before the first await, so that the idle timer cannot take it from under a call.
    slot.users++;
    clearTimeout(slot.timer);
    try {
      const result = await options.use(await slot.starting);
      slot.good = true;
      this.#deaths.delete(key);
      return result;
    } finally {
      slot.users--;
      if (slot.users === 0) this.#rest(key, slot);
    }
  }

  /** Closes everything; calls that still run fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    const retired = [...this.#retired].map((slot) => ["", slot] as const);
    const slots = [...this.#slots.entries(), ...retired];
    await Promise.all(slots.map(([key, slot]) => this.#close(key, slot)));
  }

  #take(key: string, start: () => Promise<T>): Slot<T> {
    const known = this.#slots.get(key);
    if (known !== undefined && isSound(known)) return known;
    if (known !== undefined) this.#retire(key, known);
    this.#refuseSoon(key);
    const slot: Slot<T> = {
      starting: start(),
      users: 0,
      timer: undefined,
      living: undefined,
      good: false,
    };
    this.#slots.set(key, slot);
    slot.starting.then((living) => slot.living = living, () => {
      this.#count(key);
      this.#forget(key, slot);
    });
    return slot;
  }

  #rest(key: string, slot: Slot<T>): void {
    const isRetired = this.#retired.has(slot);
    if (!isRetired && this.#slots.get(key) !== slot) return;
    const { idleMs, idleChildren } = this.#limits();
    slot.timer = setTimeout(() => void this.#close(key, slot), isRetired ? RETIRED_MS : idleMs);
    if (isRetired) return;
    // The map is in the order of the last use.
    this.#slots.delete(key);
    this.#slots.set(key, slot);
    const idle = [...this.#slots].filter(([, { users }]) => users === 0);
    const excess = idle.slice(0, Math.max(idle.length - idleChildren, 0));
    for (const [other, unused] of excess) void this.#close(other, unused);
  }

  /** Takes a slot out of use; what still runs in it may end. */
  #retire(key: string, slot: Slot<T>): void {
    this.#forget(key, slot);
    if (slot.living?.alive === false) {
      if (!slot.good) this.#count(key);
      return void this.#close(key, slot);
    }
    this.#retired.add(slot);
    if (slot.users === 0) this.#rest(key, slot);
  }

  #count(key: string): void {
    this.#deaths.set(key, { count: (this.#deaths.get(key)?.count ?? 0) + 1, at: this.#now() });
  }

  #refuseSoon(key: string): void {
    const { count, at } = this.#deaths.get(key) ?? { count: 0, at: 0 };
    if (count < DEATHS) return;
    const wait = at + Math.min(WAIT_MS * 2 ** (count - DEATHS), WAIT_MAX_MS) - this.#now();
    if (wait <= 0) return;
    const message = `Cannot start the module: it ended ${count} times in a row before it answered`;
    const hint = `It is started again in ${Math.ceil(wait / 1_000)} s at the earliest`;
    const detail = { reason: "backoff", retry_after_ms: wait };
    throw new PmlError("SANDBOX_CRASHED", message, { hint, detail });
  }

  #forget(key: string, slot: Slot<T>): void {
    clearTimeout(slot.timer);
    if (this.#slots.get(key) === slot) this.#slots.delete(key);
  }

  async #close(key: string, slot: Slot<T>): Promise<void> {
    this.#forget(key, slot);
    this.#retired.delete(slot);
    // One that never started has nothing to close, and its caller was told.
    const living = await slot.starting.catch(() => undefined);
    await living?.[Symbol.asyncDispose]();
  }
}

// A use that was given up and goes on may end the thing at any moment, with all that runs in it.
function isSound<T extends Living>({ living, users }: Slot<T>): boolean {
  return living === undefined || (living.alive && living.pending <= users);
}
