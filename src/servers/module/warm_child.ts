/**
 * Keeps a warm child: one that is started and has no module yet, so that the next module does not
 * wait for the start.
 *
 * @module
 */

/** A child that was started ahead. It may have died since. */
export interface WarmChild extends AsyncDisposable {
  readonly alive: boolean;
}

/**
 * How long after a call the next child is started, so that no answer and no end of PML waits for
 * it.
 */
const REST_MS = 250;

/** Keeps one warm child, with the options of the one that was used last. */
export class WarmChildren<T extends WarmChild> implements AsyncDisposable {
  readonly #idleMs: () => number;
  readonly #restMs: number;
  #key = "";
  #kept: Promise<T | undefined> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rest: ReturnType<typeof setTimeout> | undefined;

  /**
   * Takes how long a warm child stays unused, and how long its start is delayed, in milliseconds.
   */
  constructor(idleMs: () => number, restMs: number = REST_MS) {
    this.#idleMs = idleMs;
    this.#restMs = restMs;
  }

  /** Returns the warm child of a key if there is one, otherwise a new one. */
  async take(key: string, open: () => Promise<T>): Promise<T> {
    const kept = key === this.#key ? this.#kept : undefined;
    if (kept !== undefined) this.#kept = undefined;
    const blank = await kept;
    if (blank?.alive) return blank;
    await blank?.[Symbol.asyncDispose]();
    return await open();
  }

  /**
   * Starts a child of this key, after the delay or, with `now`, immediately. Closes a child of
   * another key.
   */
  keep(key: string, open: () => Promise<T>, { now = false } = {}): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#drop(), this.#idleMs());
    if (key === this.#key && this.#kept !== undefined) return;
    void this.#drop();
    this.#key = key;
    const start = () => {
      // If the start fails, the next call reports why.
      const kept: Promise<T | undefined> = this.#kept = open().catch(() => {
        if (this.#kept === kept) this.#kept = undefined;
        return undefined;
      });
    };
    if (now) start();
    else this.#rest = setTimeout(start, this.#restMs);
  }

  /** Closes the warm child. Returns whether there was one. */
  giveUp(): boolean {
    const isKept = this.#kept !== undefined;
    if (isKept) void this.#drop();
    return isKept;
  }

  /** Closes the warm child. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    await this.#drop();
  }

  async #drop(): Promise<void> {
    clearTimeout(this.#rest);
    const kept = this.#kept;
    this.#kept = undefined;
    await (await kept)?.[Symbol.asyncDispose]();
  }
}
