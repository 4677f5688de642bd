/**
 * Limits the lines of a log that clients and other programs can cause.
 *
 * @module
 */

/**
 * The time in which a line is not repeated, in milliseconds, and the maximum number of lines in it.
 */
const [QUIET_MS, LINES_MAX] = [600_000, 50];

/** Writes the line of a key at most once in ten minutes, and at most 50 lines in that time. */
export class LimitedLog {
  readonly #now: () => number;
  readonly #lines = new Set<string>();
  #since = -Infinity;

  /** Takes a clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Calls `write` with a line, unless there were too many. The last line states that PML omits
   * more.
   */
  write(key: string, text: string, write: (text: string) => void): void {
    const now = this.#now();
    if (now - this.#since >= QUIET_MS) {
      this.#lines.clear();
      this.#since = now;
    }
    if (this.#lines.has(key) || this.#lines.size >= LINES_MAX) return;
    this.#lines.add(key);
    const isLast = this.#lines.size === LINES_MAX;
    write(isLast ? `${text}. More such lines are left out for some minutes` : text);
  }
}
