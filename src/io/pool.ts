/**
 * Keeps one running thing for each key, such as a process. It is started once, shared, closed when
 * it is idle or others are used more, and started again when it died. If it always dies, the next
 * start has to wait.
 *
 * @module
 */

import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Places } from "./places.ts";
import { type Clock, unlessAborted } from "./waiting.ts";

/** A running thing, which can die and must be closed. */
export interface Living extends AsyncDisposable {
  readonly alive: boolean;
  /** The number of uses that have not stopped, including cancelled ones. */
  readonly pending: number;
  /**
   * Whether it has stopped answering. If it is set, a cancelled use that continues does not cause
   * the start of another thing.
   */
  readonly hung?: boolean;
  /** Is called when another thing replaces it. Uses without an end must stop then. */
  retire?(): void;
}

/** The limits of a pool. */
export interface PoolLimits {
  /** After how many milliseconds without a use a thing is closed. */
  readonly idleMs: number;
  /** How many unused things are kept. */
  readonly idleChildren: number;
}

/** The owner of a pool. */
export interface PoolOwner {
  /** The limits now. */
  readonly poolLimits: PoolLimits;
  /** The code of the error for a thing that always dies. */
  readonly deathCode: ErrorCode;
}

/** A monotonic clock, with timers. */
export interface TimerClock extends Clock {
  /** Calls a function once after some milliseconds. Returns a function that cancels this. */
  later(call: () => void, ms: number): () => void;
}

/** A use of a thing, and how to start the thing. */
export interface PoolUse<T, R> {
  /** The name of the thing in errors. */
  readonly name: string;
  /** The version of its definition. If it changes, another thing replaces it. */
  readonly version?: string;
  readonly start: () => Promise<T>;
  readonly use: (living: T) => Promise<R>;
  /** Aborts waiting for the start. */
  readonly signal?: AbortSignal;
  /** Whether it comes before others that wait for a place. */
  readonly hurried?: boolean;
  /** Called if the use has to wait for the start. The result is disposed when it has started. */
  readonly onWait?: () => Disposable;
}

/** How long a replaced thing may continue with cancelled uses, in milliseconds. */
const RETIRED_MS = 1_000;
/** The same for a thing that was not replaced. */
const UNSETTLED_MS = 30_000;
/** How many may die in a row, without one successful use, before the next start has to wait. */
const DEATHS = 5;
const WAIT_MS = 500;
const WAIT_MAX_MS = 30_000;

const CLOCK: TimerClock = {
  now: () => performance.now(),
  later: (call, ms) => {
    const timer = setTimeout(call, ms);
    return () => clearTimeout(timer);
  },
};

/** A running thing in use. Dispose it once for each `hold()`. */
export interface PoolLease<T> extends Disposable {
  readonly living: T;
}

interface Slot<T extends Living> {
  readonly key: string;
  readonly version: string | undefined;
  readonly starting: Promise<T>;
  users: number;
  /** When it is closed if it is unused until then. */
  until: number;
  /** Whether a cancelled use has continued since its last use. */
  unsettled: boolean;
  /** When the timer that closes it goes off; never if it is not set. */
  wakes: number;
  /** Cancels that timer. */
  stay: () => void;
  living: T | undefined;
  /** The result of each `hold()`. */
  lease: PoolLease<T> | undefined;
  /** Whether a use has succeeded. */
  good: boolean;
}

/** The places that things take when they start. */
type PoolPlaces = Pick<Places, "leave" | "look" | "overdue">;

interface Deaths {
  readonly count: number;
  readonly at: number;
  readonly version: string | undefined;
}

/** Shares running things by key. */
export class Pool<T extends Living> implements AsyncDisposable {
  /** The things by their last use. */
  readonly #slots = new Map<string, Slot<T>>();
  /** The last of them. To move it would make V8 allocate a new table for each use. */
  #latest: Slot<T> | undefined;
  readonly #retired = new Set<Slot<T>>();
  readonly #ends = new Map<Slot<T>, Promise<void>>();
  readonly #deaths = new Map<string, Deaths>();
  readonly #owner: PoolOwner;
  readonly #places: PoolPlaces | undefined;
  readonly #clock: TimerClock;
  #closed = false;

  /** Creates an empty pool. Without places the number of things has no limit. */
  constructor(owner: PoolOwner, places?: PoolPlaces, clock: TimerClock = CLOCK) {
    this.#owner = owner;
    this.#places = places;
    this.#clock = clock;
  }

  /** Runs `use` with the thing of a key. Starts the thing if there is none. */
  async use<R>(key: string, what: PoolUse<T, R>): Promise<R> {
    const slot = this.#take(key, what);
    // Counted before the first await, so that the idle timer cannot close it during a call.
    slot.users++;
    try {
      const result = await what.use(slot.living ?? await started(slot, what));
      slot.good = true;
      if (this.#slots.get(key) === slot) this.#deaths.delete(key);
      return result;
    } finally {
      this.#release(slot);
    }
  }

  /** Returns the running thing of a key that a use would get; undefined if it has to be started. */
  at(key: string, version?: string): T | undefined {
    return this.#running(key, version)?.living;
  }

  /**
   * Begins a use of a running thing; undefined if there is none. The use ends when it is disposed.
   * `isNew`: also of a thing whose first use has not ended.
   */
  hold(key: string, version?: string, isNew = false): PoolLease<T> | undefined {
    const slot = this.#running(key, version, isNew);
    const living = slot?.living;
    if (slot === undefined || living === undefined) return undefined;
    slot.users++;
    return slot.lease ??= { living, [Symbol.dispose]: () => this.#release(slot) };
  }

  #running(key: string, version: string | undefined, isNew = false): Slot<T> | undefined {
    const slot = this.#slots.get(key);
    if (slot === undefined || slot.version !== version || this.#closed) return undefined;
    return (slot.good || isNew) && isSound(slot) ? slot : undefined;
  }

  #release(slot: Slot<T>): void {
    slot.users--;
    if (slot.living?.alive === false) this.#bury(slot);
    else if (slot.users === 0) this.#rest(slot);
  }

  /** The number of things that are about to end. */
  get ending(): number {
    return this.#ends.size;
  }

  /** Closes the unused thing whose last use is the longest ago. Returns whether there was one. */
  giveUp(): boolean {
    const unused = [...this.#retired, ...this.#slots.values()].find(({ users, living }) =>
      users === 0 && living !== undefined
    );
    if (unused !== undefined) this.#close(unused);
    return unused !== undefined;
  }

  /** Closes everything. Calls that still run fail. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    for (const slot of [...this.#slots.values(), ...this.#retired]) this.#close(slot);
    await Promise.all(this.#ends.values());
  }

  #take(key: string, what: PoolUse<T, unknown>): Slot<T> {
    const { name, version } = what;
    this.#assertOpen(name);
    const oldSlot = this.#slots.get(key);
    const fits = oldSlot !== undefined && oldSlot.version === version && isSound(oldSlot);
    if (fits && (what.hurried || !this.#isInTheWay(oldSlot))) return oldSlot;
    if (oldSlot !== undefined) this.#retire(oldSlot);
    this.#refuseSoon(key, { name, version });
    const slot: Slot<T> = {
      key,
      version,
      starting: this.#start(key, what),
      users: 0,
      until: 0,
      unsettled: false,
      wakes: Infinity,
      stay: () => {},
      living: undefined,
      lease: undefined,
      good: false,
    };
    this.#place(slot);
    slot.starting.then((living) => {
      slot.living = living;
      if (slot.users === 0) this.#places?.look();
    }, () => {
      if (this.#slots.get(key) === slot) this.#count(slot);
      this.#forget(slot);
    });
    return slot;
  }

  /** Returns whether one use more would keep a place from overdue callers. */
  #isInTheWay({ living, users }: Slot<T>): boolean {
    const overdue = this.#places?.overdue() ?? 0;
    return living !== undefined && users > 0 && this.#retired.size < overdue;
  }

  /** Starts a thing after those before it have ended: two would use the same files and ports. */
  async #start(key: string, { name, start }: PoolUse<T, unknown>): Promise<T> {
    for (let before = this.#ending(key); before.length > 0; before = this.#ending(key)) {
      await Promise.all(before);
    }
    this.#assertOpen(name);
    return await start();
  }

  /** Returns the ends of things of a key, except those that have not started. */
  #ending(key: string): readonly Promise<void>[] {
    const ends = [...this.#ends].filter(([slot]) => slot.key === key && slot.living !== undefined);
    return ends.map(([, end]) => end);
  }

  #assertOpen(name: string): void {
    if (!this.#closed) return;
    throw new PmlError("CANCELLED", `Cannot start ${quoted(name)}: PML is ending`);
  }

  #rest(slot: Slot<T>): void {
    const places = this.#places;
    const isRetired = this.#retired.has(slot);
    if (!isRetired && this.#slots.get(slot.key) !== slot) return;
    if (slot.living === undefined && places?.leave(slot.key)) return this.#forget(slot);
    const { idleMs, idleChildren } = this.#owner.poolLimits;
    slot.unsettled = !isRetired && (slot.living?.pending ?? 0) > 0;
    const delay = slot.unsettled ? Math.min(idleMs, UNSETTLED_MS) : idleMs;
    slot.until = this.#clock.now() + (isRetired ? RETIRED_MS : delay);
    // A timer that is already set checks again when it fires, because uses may follow each other fast.
    if (slot.wakes > slot.until) this.#wake(slot);
    if (isRetired) return places?.look();
    if (this.#latest !== slot) {
      this.#slots.delete(slot.key);
      this.#place(slot);
    }
    if (this.#slots.size <= idleChildren) return places?.look();
    const idle = [...this.#slots.values()].filter(({ users }) => users === 0);
    const excess = idle.slice(0, Math.max(idle.length - idleChildren, 0));
    for (const unused of excess) this.#close(unused);
    places?.look();
  }

  #place(slot: Slot<T>): void {
    this.#slots.set(slot.key, slot);
    this.#latest = slot;
  }

  #wake(slot: Slot<T>): void {
    slot.stay();
    slot.wakes = slot.until;
    slot.stay = this.#clock.later(() => {
      slot.wakes = Infinity;
      // The end of a use sets the timer again.
      if (slot.users > 0) return;
      if (slot.until > this.#clock.now()) return this.#wake(slot);
      const settled = slot.unsettled && slot.living?.pending === 0;
      return settled ? this.#rest(slot) : this.#close(slot);
    }, slot.until - this.#clock.now());
  }

  /** Replaces a slot. Its running uses may finish. */
  #retire(slot: Slot<T>): void {
    slot.living?.retire?.();
    this.#forget(slot);
    if (slot.living?.alive === false) return this.#close(slot);
    this.#retired.add(slot);
    if (slot.users === 0) this.#rest(slot);
  }

  /** Removes a thing that died in a use, once for all its users. */
  #bury(slot: Slot<T>): void {
    const isCurrent = this.#slots.get(slot.key) === slot;
    if (isCurrent && !slot.good) this.#count(slot);
    if (isCurrent || this.#retired.has(slot)) this.#close(slot);
  }

  #count({ key, version }: Slot<T>): void {
    const count = (this.#deaths.get(key)?.count ?? 0) + 1;
    this.#deaths.set(key, { count, at: this.#clock.now(), version });
  }

  #refuseSoon(key: string, { name, version }: Pick<PoolUse<T, unknown>, "name" | "version">): void {
    const deaths = this.#deaths.get(key);
    // Another version is started at once.
    if (deaths?.version !== version) this.#deaths.delete(key);
    const { count, at } = this.#deaths.get(key) ?? { count: 0, at: 0 };
    if (count < DEATHS) return;
    const wait = at + Math.min(WAIT_MS * 2 ** (count - DEATHS), WAIT_MAX_MS) - this.#clock.now();
    if (wait <= 0) return;
    const why = `it ended ${count} times in a row before it answered`;
    throw new PmlError(this.#owner.deathCode, `Cannot start ${quoted(name)}: ${why}`, {
      hint: `It is started again in ${Math.ceil(wait / 1_000)} s at the earliest`,
      detail: { reason: "backoff", retry_after_ms: Math.ceil(wait) },
    });
  }

  #forget(slot: Slot<T>): void {
    slot.stay();
    slot.wakes = Infinity;
    if (this.#slots.get(slot.key) === slot) this.#slots.delete(slot.key);
    if (this.#latest === slot) this.#latest = undefined;
  }

  #close(slot: Slot<T>): void {
    this.#forget(slot);
    this.#retired.delete(slot);
    // A thing that never started has nothing to close, and its caller got the error.
    const closed = slot.starting.then((living) => living[Symbol.asyncDispose](), () => {});
    const end = closed.finally(() => {
      this.#ends.delete(slot);
      this.#places?.look();
    });
    this.#ends.set(slot, end);
  }
}

/** Waits for a start, or until the signal aborts. */
async function started<T extends Living>(
  { starting }: Slot<T>,
  { signal, onWait }: Pick<PoolUse<T, unknown>, "signal" | "onWait">,
): Promise<T> {
  using _ = onWait?.();
  return await (signal === undefined ? starting : unlessAborted(starting, signal));
}

// A cancelled use that continues may end the thing at any moment, with all other uses.
function isSound<T extends Living>({ living, users }: Slot<T>): boolean {
  if (living === undefined) return true;
  const { alive, hung, pending } = living;
  return alive && !(hung ?? pending > users);
}
