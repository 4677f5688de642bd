/**
 * Knows how much waits for the client, and how much has come of messages to it. While that is more
 * than may be, servers are not read.
 *
 * @module
 */

/**
 * Tells how much a reader has of a message that is not whole, and gives what to wait for before it
 * reads on; nothing where there is room.
 */
export type Room = (reader: object, size: number) => Promise<void> | undefined;

/** What is shorter is not counted: most messages are. */
const SMALL = 1 << 20;
/** How long a reader waits at most for another one that reads nothing. */
const PIECE_MS = 500;

/** What waits for the client. */
export class Backlog {
  readonly #max: () => number;
  /** What has come of long messages, and when a piece of them came last. */
  readonly #reading = new Map<object, { readonly size: number; at: number }>();
  #size = 0;
  #partial = 0;
  #less = Promise.withResolvers<void>();

  /** Nothing waits yet. */
  constructor(max: () => number) {
    this.#max = max;
  }

  /** Whether more waits for the client than may. */
  get isFull(): boolean {
    return this.#size > this.#max();
  }

  /** Takes what waits for the client now. */
  set size(size: number) {
    const isLess = size < this.#size;
    this.#size = size;
    if (isLess) this.#wake();
  }

  /** Lets readers go on while there is room, and of those that read the one that began first. */
  readonly room: Room = (reader, size) => {
    const known = this.#reading.get(reader)?.size ?? 0;
    const now = size < SMALL ? 0 : size;
    if (now > 0) this.#reading.set(reader, { size: now, at: performance.now() });
    else this.#reading.delete(reader);
    this.#partial += now - known;
    if (now < known) this.#wake();
    return this.#mayRead(reader) ? undefined : this.#wait(reader);
  };

  #mayRead(reader: object): boolean {
    if (this.isFull) return false;
    // What is short waits for the client alone, and not for what others have half of.
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
    // One that is in a long message waits for the client, however long that takes.
    const isStopped = () => !isLate || this.isFull && this.#reading.has(reader);
    while (isStopped() && !this.#mayRead(reader)) await this.#less.promise;
    clearTimeout(timer);
    const reading = this.#reading.get(reader);
    if (reading !== undefined) reading.at = performance.now();
  }
}
