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
  #child: Promise<T | undefined> | undefined;
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
    const child = key === this.#key ? this.#child : undefined;
    if (child !== undefined) this.#child = undefined;
    const blank = await child;
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
    if (key === this.#key && this.#child !== undefined) return;
    void this.#drop();
    this.#key = key;
    const start = () => {
      // If the start fails, the next call reports why.
      const child: Promise<T | undefined> = this.#child = open().catch(() => {
        if (this.#child === child) this.#child = undefined;
        return undefined;
      });
    };
    if (now) start();
    else this.#rest = setTimeout(start, this.#restMs);
  }

  /** Closes the warm child. Returns whether there was one. */
  giveUp(): boolean {
    const isKept = this.#child !== undefined;
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
    const child = this.#child;
    this.#child = undefined;
    await (await child)?.[Symbol.asyncDispose]();
  }
}
