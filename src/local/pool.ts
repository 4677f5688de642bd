/**
 * Keeps one running thing per key: started once, shared, given up when idle, started anew when it
 * died.
 *
 * @module
 */

/** What the pool keeps: something that can die and must be closed. */
export interface Living extends AsyncDisposable {
  readonly alive: boolean;
  /** How many uses have not stopped yet, those that were given up among them. */
  readonly pending: number;
}

/** How long a thing that is no longer used may take to stop what was given up. */
const RETIRED_MS = 1_000;

interface Slot<T extends Living> {
  readonly starting: Promise<T>;
  users: number;
  timer: ReturnType<typeof setTimeout> | undefined;
  living: T | undefined;
}

/** Shares living things by key. */
export class Pool<T extends Living> implements AsyncDisposable {
  readonly #slots = new Map<string, Slot<T>>();
  readonly #retired = new Set<Slot<T>>();
  readonly #idleMs: () => number;

  /** Makes a pool that gives a thing up after it was unused for `idleMs` milliseconds. */
  constructor(idleMs: () => number) {
    this.#idleMs = idleMs;
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
      return await options.use(await slot.starting);
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
    const slot: Slot<T> = { starting: start(), users: 0, timer: undefined, living: undefined };
    this.#slots.set(key, slot);
    slot.starting.then((living) => slot.living = living, () => this.#forget(key, slot));
    return slot;
  }

  #rest(key: string, slot: Slot<T>): void {
    const isRetired = this.#retired.has(slot);
    if (!isRetired && this.#slots.get(key) !== slot) return;
    const ms = isRetired ? RETIRED_MS : this.#idleMs();
    slot.timer = setTimeout(() => void this.#close(key, slot), ms);
  }

  /** Takes a slot out of use; what still runs in it may end. */
  #retire(key: string, slot: Slot<T>): void {
    this.#forget(key, slot);
    if (slot.living?.alive === false) return void this.#close(key, slot);
    this.#retired.add(slot);
    if (slot.users === 0) this.#rest(key, slot);
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
