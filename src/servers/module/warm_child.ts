/**
 * Keeps a warm child: a child that has started, but has no module yet. With it, the next module
 * does not wait for the start of a child.
 *
 * @module
 */

/** A child that was started ahead of its use. It may have died since. */
export interface WarmChild extends AsyncDisposable {
  readonly isAlive: boolean;
}

/**
 * How long after a call the next child is started, in milliseconds. With the delay, neither the
 * answer nor the end of a short process of PML waits for the start.
 */
const DELAY_MS = 250;

/** Keeps one warm child, with the options of the last used child. */
export class WarmChildren<T extends WarmChild> implements AsyncDisposable {
  readonly #idleMs: () => number;
  readonly #delayMs: number;
  #key = "";
  #child: Promise<T | undefined> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #delay: ReturnType<typeof setTimeout> | undefined;

  /**
   * `idleMs` returns how long a warm child may stay unused. `delayMs` is the delay before a start.
   * Both are in milliseconds.
   */
  constructor(idleMs: () => number, delayMs: number = DELAY_MS) {
    this.#idleMs = idleMs;
    this.#delayMs = delayMs;
  }

  /** Returns the warm child of a key if there is one, otherwise a new one. */
  async take(key: string, open: () => Promise<T>): Promise<T> {
    const child = key === this.#key ? this.#child : undefined;
    if (child !== undefined) this.#child = undefined;
    const warmChild = await child;
    if (warmChild?.isAlive) return warmChild;
    await warmChild?.[Symbol.asyncDispose]();
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
    else this.#delay = setTimeout(start, this.#delayMs);
  }

  /** Closes the warm child. Returns whether there was one. */
  closeWarm(): boolean {
    const hasChild = this.#child !== undefined;
    if (hasChild) void this.#drop();
    return hasChild;
  }

  /** Closes the warm child. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#timer);
    await this.#drop();
  }

  async #drop(): Promise<void> {
    clearTimeout(this.#delay);
    const child = this.#child;
    this.#child = undefined;
    await (await child)?.[Symbol.asyncDispose]();
  }
}
