/**
 * Stores the sent events of a session, so that a client whose stream broke can resume it.
 *
 * @module
 */

interface Sent {
  readonly stream: string;
  /** The text of the message; empty for an event that has only an id. */
  readonly text: string;
  readonly at: number;
}

/** The events of all sessions together. */
export class SentBytes {
  /** Their size. */
  bytes = 0;
  readonly stores: Set<SentEvents> = new Set();
  readonly #most: number;

  /** Takes the most bytes that all sessions together may store. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Removes the oldest events of all sessions if they are too many. */
  drop(): void {
    while (this.bytes > this.#most) {
      const [oldest] = [...this.stores].sort((one, other) => one.since - other.since);
      oldest?.dropOldest();
    }
  }
}

/** The maximum number of stored messages of a session, and their lifetime in milliseconds. */
const [MOST_EVENTS, KEPT_MS] = [1_000, 300_000];

/** The latest events of one session, in the order in which they were sent. */
export class SentEvents implements Disposable {
  readonly #all = new Map<string, Sent>();
  readonly #shared: SentBytes;
  #last = 0;

  /** Creates an empty store of a session. */
  constructor(shared: SentBytes) {
    this.#shared = shared;
    shared.stores.add(this);
  }

  /** When the oldest stored event was sent; Infinity if there is none. */
  get since(): number {
    const [oldest] = this.#all.values();
    return oldest?.at ?? Infinity;
  }

  /** Removes the oldest event. */
  dropOldest(): void {
    const [[id, oldest] = []] = this.#all;
    if (id !== undefined && oldest !== undefined) this.#forget(id, oldest);
  }

  /** Stores an event. Returns its id. */
  add(stream: string, text: string): string {
    const id = `${++this.#last}`;
    // The session has ended.
    if (!this.#shared.stores.has(this)) return id;
    const at = performance.now();
    this.#all.set(id, { stream, text, at });
    this.#shared.bytes += text.length;
    while (this.#all.size > MOST_EVENTS || this.since <= at - KEPT_MS) this.dropOldest();
    this.#shared.drop();
    return id;
  }

  /** Returns the stream of an event; undefined if the event is not stored. */
  streamOf(id: string): string | undefined {
    return this.#all.get(id)?.stream;
  }

  /** Returns the messages that follow an event on its stream, with their ids. */
  after(id: string): readonly (readonly [id: string, text: string])[] {
    const stream = this.streamOf(id);
    const all = [...this.#all];
    return all.slice(all.findIndex(([each]) => each === id) + 1)
      .filter(([, one]) => one.stream === stream && one.text !== "")
      .map(([each, { text }]) => [each, text]);
  }

  /** Removes all events. */
  [Symbol.dispose](): void {
    this.#shared.stores.delete(this);
    for (const [id, sentEvent] of this.#all) this.#forget(id, sentEvent);
  }

  #forget(id: string, { text }: Sent): void {
    this.#all.delete(id);
    this.#shared.bytes -= text.length;
  }
}
