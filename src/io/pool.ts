/**
 * Keeps one running thing for each key, such as a process. The thing is started once, shared,
 * closed when it is idle or another thing needs its place, and started again if it has died. If
 * things of a key die again and again, the next start has to wait.
 *
 * @module
 */

import { type ErrorCode, PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";
import type { Semaphore } from "./semaphore.ts";
import { type Clock, unlessAborted } from "./waiting.ts";

/** A running thing, which can die and must be closed. */
export interface Living extends AsyncDisposable {
  readonly isAlive: boolean;
  /** The number of uses that have not stopped, including cancelled ones. */
  readonly pending: number;
  /**
   * Whether it has stopped answering. A thing that has this member is replaced only if it is true;
   * any other thing is also replaced if a cancelled use continues.
   */
  readonly isHung?: boolean;
  /** Called when another thing replaces it. Uses that never end must stop then. */
  retire?(): void;
}

/** The limits of a pool. */
export interface PoolLimits {
  /** The time without a use after which a thing is closed, in milliseconds. */
  readonly idleMs: number;
  /** The maximum number of unused things. */
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
  callLater(call: () => void, ms: number): () => void;
}

/** A use of a thing, and how to start the thing. */
export interface PoolUse<T, R> {
  /** The name of the thing in errors. */
  readonly name: string;
  /** The version of its definition. If it changes, another thing replaces it. */
  readonly version?: string;
  readonly start: () => Promise<T>;
  readonly use: (living: T) => Promise<R>;
  /** Ends the wait for the start when it aborts. */
  readonly signal?: AbortSignal;
  /** Whether the use gets a place before others that wait. */
  readonly isUrgent?: boolean;
  /** Called if the use has to wait for the start. The result is disposed when it has started. */
  readonly onWait?: () => Disposable;
}

/** How long a replaced thing may continue with cancelled uses, in milliseconds. */
const RETIRED_MS = 1_000;
/**
 * How long an unused thing that was not replaced may continue with cancelled uses, in milliseconds.
 */
const UNSETTLED_MS = 30_000;
/** The number of things of a key that die in a row, without a successful use, until starts wait. */
const DEATHS = 5;
const WAIT_MS = 500;
const WAIT_MAX_MS = 30_000;

const CLOCK: TimerClock = {
  now: () => performance.now(),
  callLater: (call, ms) => {
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
  readonly name: string;
  readonly version: string | undefined;
  readonly starting: Promise<T>;
  users: number;
  /** The time at which the thing is closed if it is unused until then. */
  until: number;
  /** Whether a cancelled use continued when the last other use ended. */
  isUnsettled: boolean;
  /** The time at which the timer that closes the thing fires; `Infinity` without a timer. */
  timerAt: number;
  /** Cancels that timer. */
  cancelTimer: () => void;
  living: T | undefined;
  /** The result of each `hold()`, which is the same object. */
  lease: PoolLease<T> | undefined;
  /** Whether a use has succeeded. */
  hasSucceeded: boolean;
}

/** The places that things take when they start. */
type PoolSemaphore = Pick<Semaphore, "cancel" | "serveQueue" | "overdueCount">;

interface Deaths {
  readonly count: number;
  readonly at: number;
  readonly version: string | undefined;
}

/** Shares running things by key. */
export class Pool<T extends Living> implements AsyncDisposable {
  /** The things by their last use. */
  readonly #slots = new Map<string, Slot<T>>();
  /** The last slot of `#slots`. Moving it to the end again would make V8 allocate a new table. */
  #latest: Slot<T> | undefined;
  readonly #retired = new Set<Slot<T>>();
  readonly #ends = new Map<Slot<T>, Promise<void>>();
  readonly #deaths = new Map<string, Deaths>();
  readonly #owner: PoolOwner;
  readonly #semaphore: PoolSemaphore | undefined;
  readonly #clock: TimerClock;
  #closed = false;

  /** Creates an empty pool. Without a semaphore the number of things has no limit. */
  constructor(owner: PoolOwner, semaphore?: PoolSemaphore, clock: TimerClock = CLOCK) {
    this.#owner = owner;
    this.#semaphore = semaphore;
    this.#clock = clock;
  }

  /** Runs `use` with the thing of a key. Starts the thing if there is none. */
  async use<R>(key: string, what: PoolUse<T, R>): Promise<R> {
    const slot = this.#take(key, what);
    // Counted before the first await, so that the idle timer cannot close the thing during a call.
    slot.users++;
    try {
      const result = await what.use(slot.living ?? await waitForStart(slot, what));
      slot.hasSucceeded = true;
      if (this.#slots.get(key) === slot) this.#deaths.delete(key);
      return result;
    } finally {
      this.#release(slot);
    }
  }

  /** Returns the running thing of a key that a use would get; undefined if it has to be started. */
  find(key: string, version?: string): T | undefined {
    return this.#running(key, version)?.living;
  }

  /**
   * Begins a use of a running thing; undefined if there is none. The use ends when the result is
   * disposed. `isNew` includes a thing whose first use has not ended.
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
    return (slot.hasSucceeded || isNew) && isSound(slot) ? slot : undefined;
  }

  #release(slot: Slot<T>): void {
    slot.users--;
    if (slot.living?.isAlive === false) this.#removeDead(slot);
    else if (slot.users === 0) this.#setIdle(slot);
  }

  /** The number of things that are about to end. */
  get endingCount(): number {
    return this.#ends.size;
  }

  /** Closes the unused thing whose last use is the longest ago. Returns whether there was one. */
  closeUnused(): boolean {
    const unused = [...this.#retired, ...this.#slots.values()].find(({ users, living }) =>
      users === 0 && living !== undefined
    );
    if (unused !== undefined) this.#close(unused);
    return unused !== undefined;
  }

  /** Closes the things with a name, so that their uses fail. The next use starts one again. */
  async end(name: string): Promise<void> {
    const slots = [...this.#slots.values(), ...this.#retired].filter((slot) => slot.name === name);
    for (const slot of slots) this.#close(slot);
    await Promise.all(slots.map((slot) => this.#ends.get(slot)));
  }

  /** Returns the running things with a name. */
  findByName(name: string): readonly T[] {
    return [...this.#slots.values(), ...this.#retired].flatMap((slot) =>
      slot.name === name && slot.living?.isAlive ? [slot.living] : []
    );
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
    if (fits && (what.isUrgent || !this.#isInTheWay(oldSlot))) return oldSlot;
    if (oldSlot !== undefined) this.#retire(oldSlot);
    this.#assertStartAllowed(key, { name, version });
    const slot: Slot<T> = {
      key,
      name,
      version,
      starting: this.#start(key, what),
      users: 0,
      until: 0,
      isUnsettled: false,
      timerAt: Infinity,
      cancelTimer: () => {},
      living: undefined,
      lease: undefined,
      hasSucceeded: false,
    };
    this.#setLatest(slot);
    slot.starting.then((living) => {
      slot.living = living;
      if (slot.users === 0) this.#semaphore?.serveQueue();
    }, () => {
      if (this.#slots.get(key) === slot) this.#countDeath(slot);
      this.#forget(slot);
    });
    return slot;
  }

  /** Returns whether another use would delay overdue callers that need the thing's place. */
  #isInTheWay({ living, users }: Slot<T>): boolean {
    const overdue = this.#semaphore?.overdueCount() ?? 0;
    return living !== undefined && users > 0 && this.#retired.size < overdue;
  }

  /**
   * Starts a thing after earlier things of its key have ended: they use the same files and ports.
   */
  async #start(key: string, { name, start }: PoolUse<T, unknown>): Promise<T> {
    for (let before = this.#endsOf(key); before.length > 0; before = this.#endsOf(key)) {
      await Promise.all(before);
    }
    this.#assertOpen(name);
    return await start();
  }

  /** Returns the ends of things of a key, except those that have not started. */
  #endsOf(key: string): readonly Promise<void>[] {
    const ends = [...this.#ends].filter(([slot]) => slot.key === key && slot.living !== undefined);
    return ends.map(([, end]) => end);
  }

  #assertOpen(name: string): void {
    if (!this.#closed) return;
    throw new PmlError("CANCELLED", `Cannot start ${quoted(name)}: PML is ending`);
  }

  #setIdle(slot: Slot<T>): void {
    const semaphore = this.#semaphore;
    const isRetired = this.#retired.has(slot);
    if (!isRetired && this.#slots.get(slot.key) !== slot) return;
    if (slot.living === undefined && semaphore?.cancel(slot.key)) return this.#forget(slot);
    const { idleMs, idleChildren } = this.#owner.poolLimits;
    slot.isUnsettled = !isRetired && (slot.living?.pending ?? 0) > 0;
    const delay = slot.isUnsettled ? Math.min(idleMs, UNSETTLED_MS) : idleMs;
    slot.until = this.#clock.now() + (isRetired ? RETIRED_MS : delay);
    // An earlier timer stays and checks the time when it fires: setting one for each use is slow.
    if (slot.timerAt > slot.until) this.#setTimer(slot);
    if (isRetired) return semaphore?.serveQueue();
    if (this.#latest !== slot) {
      this.#slots.delete(slot.key);
      this.#setLatest(slot);
    }
    if (this.#slots.size <= idleChildren) return semaphore?.serveQueue();
    const idle = [...this.#slots.values()].filter(({ users }) => users === 0);
    const excess = idle.slice(0, Math.max(idle.length - idleChildren, 0));
    for (const unused of excess) this.#close(unused);
    semaphore?.serveQueue();
  }

  #setLatest(slot: Slot<T>): void {
    this.#slots.set(slot.key, slot);
    this.#latest = slot;
  }

  #setTimer(slot: Slot<T>): void {
    slot.cancelTimer();
    slot.timerAt = slot.until;
    slot.cancelTimer = this.#clock.callLater(() => {
      slot.timerAt = Infinity;
      // The end of a use sets the timer again.
      if (slot.users > 0) return;
      if (slot.until > this.#clock.now()) return this.#setTimer(slot);
      const settled = slot.isUnsettled && slot.living?.pending === 0;
      return settled ? this.#setIdle(slot) : this.#close(slot);
    }, slot.until - this.#clock.now());
  }

  /** Replaces a slot. Its running uses may finish. */
  #retire(slot: Slot<T>): void {
    slot.living?.retire?.();
    this.#forget(slot);
    if (slot.living?.isAlive === false) return this.#close(slot);
    this.#retired.add(slot);
    if (slot.users === 0) this.#setIdle(slot);
  }

  /** Removes a thing that died in a use, once for all its users. */
  #removeDead(slot: Slot<T>): void {
    const isCurrent = this.#slots.get(slot.key) === slot;
    if (isCurrent && !slot.hasSucceeded) this.#countDeath(slot);
    if (isCurrent || this.#retired.has(slot)) this.#close(slot);
  }

  #countDeath({ key, version }: Slot<T>): void {
    const count = (this.#deaths.get(key)?.count ?? 0) + 1;
    this.#deaths.set(key, { count, at: this.#clock.now(), version });
  }

  #assertStartAllowed(
    key: string,
    { name, version }: Pick<PoolUse<T, unknown>, "name" | "version">,
  ): void {
    const deaths = this.#deaths.get(key);
    // The deaths of another version do not count.
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
    slot.cancelTimer();
    slot.timerAt = Infinity;
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
      this.#semaphore?.serveQueue();
    });
    this.#ends.set(slot, end);
  }
}

/** Waits for a start, or until the signal aborts. */
async function waitForStart<T extends Living>(
  { starting }: Slot<T>,
  { signal, onWait }: Pick<PoolUse<T, unknown>, "signal" | "onWait">,
): Promise<T> {
  using _ = onWait?.();
  return await (signal === undefined ? starting : unlessAborted(starting, signal));
}

// A cancelled use that continues may end the thing at any moment, together with all other uses.
function isSound<T extends Living>({ living, users }: Slot<T>): boolean {
  if (living === undefined) return true;
  const { isAlive, isHung, pending } = living;
  return isAlive && !(isHung ?? pending > users);
}
