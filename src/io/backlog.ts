/**
 * Counts the bytes that wait for the client and the bytes of incomplete messages from servers.
 * While there are too many, PML reads nothing from servers.
 *
 * @module
 */

/**
 * Takes the number of bytes of an incomplete message that a reader has received. Returns a promise
 * that the reader must await before it continues; undefined if it may continue at once.
 */
export type WaitForMemory = (reader: object, size: number) => Promise<void> | undefined;

/** The size in bytes from which messages are counted. Most messages are smaller. */
const SMALL = 1 << 20;
/** How long a reader waits for another reader that receives nothing, in milliseconds. */
const PIECE_MS = 500;

/** The bytes that wait for the client. */
export class Backlog {
  readonly #max: () => number;
  /** The size of each incomplete long message, and the time of its last piece. */
  readonly #reading = new Map<object, { readonly size: number; at: number }>();
  #size = 0;
  #fullMs = 0;
  /** When the waiting bytes exceeded the limit; undefined while they do not. */
  #fullSince: number | undefined;
  /** The total size of the incomplete long messages. */
  #partialSize = 0;
  /** Resolves when a reader that waits should look again. */
  #wakeUp = Promise.withResolvers<void>();

  /** Takes a function that returns the limit. */
  constructor(max: () => number) {
    this.#max = max;
  }

  /** Whether more bytes wait for the client than the limit. */
  get isFull(): boolean {
    return this.#size > this.#max();
  }

  /**
   * The total time for which more bytes than the limit have waited so far, in milliseconds. It
   * never decreases: a new limit counts from the next change of the size.
   */
  get fullMs(): number {
    return this.#fullSince === undefined
      ? this.#fullMs
      : this.#fullMs + performance.now() - this.#fullSince;
  }

  /** The number of bytes that wait for the client. */
  get size(): number {
    return this.#size;
  }

  set size(size: number) {
    const isLess = size < this.#size;
    this.#size = size;
    if (this.isFull) this.#fullSince ??= performance.now();
    else if (this.#fullSince !== undefined) {
      this.#fullMs += performance.now() - this.#fullSince;
      this.#fullSince = undefined;
    }
    if (isLess) this.#wake();
  }

  /** Lets all readers continue below the limit. Beyond it, only the first reader continues. */
  readonly waitForMemory: WaitForMemory = (reader, size) => {
    const reservedBytes = this.#reading.get(reader)?.size ?? 0;
    const countedSize = size < SMALL ? 0 : size;
    if (countedSize > 0) this.#reading.set(reader, { size: countedSize, at: performance.now() });
    else this.#reading.delete(reader);
    this.#partialSize += countedSize - reservedBytes;
    if (countedSize < reservedBytes) this.#wake();
    return this.#mayRead(reader) ? undefined : this.#wait(reader);
  };

  #mayRead(reader: object): boolean {
    if (this.isFull) return false;
    // A short message waits for the client only, not for the incomplete messages of other readers.
    if (!this.#reading.has(reader)) return true;
    if (this.#size + this.#partialSize <= this.#max()) return true;
    // Readers that have received nothing for `PIECE_MS` do not count.
    const earliest = performance.now() - PIECE_MS;
    const [first] =
      [...this.#reading].find(([other, { at }]) => other === reader || at > earliest) ?? [];
    return first === reader;
  }

  #wake(): void {
    this.#wakeUp.resolve();
    this.#wakeUp = Promise.withResolvers();
  }

  async #wait(reader: object): Promise<void> {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#wake();
    }, PIECE_MS);
    // A reader of a long message waits for the client without a time limit.
    const mustWait = () => !isLate || this.isFull && this.#reading.has(reader);
    while (mustWait() && !this.#mayRead(reader)) await this.#wakeUp.promise;
    clearTimeout(timer);
    const reading = this.#reading.get(reader);
    if (reading !== undefined) reading.at = performance.now();
  }
}
