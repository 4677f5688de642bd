/**
 * Keeps a child warm that has no module yet, so that the next module finds it started.
 *
 * @module
 */

/** Something that was started ahead, and may have died since. */
export interface WarmChild extends AsyncDisposable {
  readonly alive: boolean;
}

/** How long after a call the next blank thing is started: neither answers nor an end wait for it. */
const REST_MS = 250;

/** Keeps one blank thing, made like the one that was used last. */
export class WarmChildren<T extends WarmChild> implements AsyncDisposable {
  readonly #idleMs: () => number;
  readonly #restMs: number;
  #key = "";
  #kept: Promise<T | undefined> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #rest: ReturnType<typeof setTimeout> | undefined;

  /** Takes how long a blank thing stays unused, and how long it is not yet started. */
  constructor(idleMs: () => number, restMs: number = REST_MS) {
    this.#idleMs = idleMs;
    this.#restMs = restMs;
  }

  /** Gives the blank thing of a key, if there is one, or a new one. */
  async take(key: string, open: () => Promise<T>): Promise<T> {
    const kept = key === this.#key ? this.#kept : undefined;
    if (kept !== undefined) this.#kept = undefined;
    const blank = await kept;
    if (blank?.alive) return blank;
    await blank?.[Symbol.asyncDispose]();
    return await open();
  }

  /** Has a blank thing of this key ready soon, in place of one of another key. */
  keep(key: string, open: () => Promise<T>): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#drop(), this.#idleMs());
    if (key === this.#key && this.#kept !== undefined) return;
    void this.#drop();
    this.#key = key;
    this.#rest = setTimeout(() => {
      // Where it cannot be started, the next call says why.
      const kept: Promise<T | undefined> = this.#kept = open().catch(() => {
        if (this.#kept === kept) this.#kept = undefined;
        return undefined;
      });
    }, this.#restMs);
  }

  /** Closes what is kept; tells whether there was anything. */
  giveUp(): boolean {
    const isKept = this.#kept !== undefined;
    if (isKept) void this.#drop();
    return isKept;
  }

  /** Closes what is kept. */
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
