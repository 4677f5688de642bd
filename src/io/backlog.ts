/**
 * Counts the bytes that wait for the client and the bytes of incomplete messages from servers.
 * While there are too many, servers are not read.
 *
 * @module
 */

/**
 * Receives the number of bytes that a reader has of an incomplete message. Returns a promise that
 * the reader must await before it continues; undefined if it may continue at once.
 */
export type WaitForMemory = (reader: object, size: number) => Promise<void> | undefined;

/** Shorter messages are not counted. Most messages are shorter. */
const SMALL = 1 << 20;
/** The longest time that a reader waits for another reader that gets nothing, in milliseconds. */
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
  #partial = 0;
  #less = Promise.withResolvers<void>();

  /** Takes a function that returns the limit. */
  constructor(max: () => number) {
    this.#max = max;
  }

  /** Whether more bytes wait for the client than the limit. */
  get isFull(): boolean {
    return this.#size > this.#max();
  }

  /**
   * For how long more bytes than the limit have waited so far, in milliseconds. It never decreases:
   * a new limit counts from the next change of the size.
   */
  get fullMs(): number {
    return this.#fullSince === undefined
      ? this.#fullMs
      : this.#fullMs + performance.now() - this.#fullSince;
  }

  /** Sets how many bytes wait for the client. */
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

  /** Lets readers continue below the limit. Beyond it, only the first one continues. */
  readonly room: WaitForMemory = (reader, size) => {
    const reservedBytes = this.#reading.get(reader)?.size ?? 0;
    const now = size < SMALL ? 0 : size;
    if (now > 0) this.#reading.set(reader, { size: now, at: performance.now() });
    else this.#reading.delete(reader);
    this.#partial += now - reservedBytes;
    if (now < reservedBytes) this.#wake();
    return this.#mayRead(reader) ? undefined : this.#wait(reader);
  };

  #mayRead(reader: object): boolean {
    if (this.isFull) return false;
    // A short message waits for the client only, not for the incomplete messages of other readers.
    if (!this.#reading.has(reader)) return true;
    if (this.#size + this.#partial <= this.#max()) return true;
    const late = performance.now() - PIECE_MS;
    const [first] = [...this.#reading].find(([one, { at }]) => one === reader || at > late) ?? [];
    return first === reader;
  }

  #wake(): void {
    this.#less.resolve();
    this.#less = Promise.withResolvers();
  }

  async #wait(reader: object): Promise<void> {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#wake();
    }, PIECE_MS);
    // A reader of a long message waits for the client without a time limit.
    const isStopped = () => !isLate || this.isFull && this.#reading.has(reader);
    while (isStopped() && !this.#mayRead(reader)) await this.#less.promise;
    clearTimeout(timer);
    const reading = this.#reading.get(reader);
    if (reading !== undefined) reading.at = performance.now();
  }
}
