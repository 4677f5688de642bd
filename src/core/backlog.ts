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
/** How long a reader waits at most for each piece: one that stops in a message holds up nobody. */
const PIECE_MS = 500;

/** What waits for the client. */
export class Backlog {
  readonly #max: () => number;
  readonly #reading = new Map<object, number>();
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

  /** Lets readers go on while there is room, and the one that began first unless the client is slow. */
  readonly room: Room = (reader, size) => {
    const known = this.#reading.get(reader) ?? 0;
    const now = size < SMALL ? 0 : size;
    if (now > 0) this.#reading.set(reader, now);
    else this.#reading.delete(reader);
    this.#partial += now - known;
    if (now < known) this.#wake();
    return this.#mayRead(reader) ? undefined : this.#wait(reader);
  };

  #mayRead(reader: object): boolean {
    if (this.#size + this.#partial <= this.#max()) return true;
    const [first = reader] = this.#reading.keys();
    return first === reader && !this.isFull;
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
    while (!isLate && !this.#mayRead(reader)) await this.#less.promise;
    clearTimeout(timer);
  }
}
