/**
 * Stores the sent events of a session, so that a client whose stream broke can resume it.
 *
 * @module
 */

/** An event that was sent. */
interface SentEvent {
  /** The name of its stream. */
  readonly stream: string;
  /** The text of the message; empty for an event that has only an id. */
  readonly text: string;
  /** When it was sent, by `performance.now()`. */
  readonly sentAt: number;
}

/** Counts and limits the stored events of all sessions together. */
export class SentBytes {
  /** The size of the stored events, as the number of characters of their texts. */
  bytes = 0;
  readonly stores: Set<SentEvents> = new Set();
  readonly #sizeMax: number;

  /** Takes the maximum size of the events of all sessions together. */
  constructor(sizeMax: number) {
    this.#sizeMax = sizeMax;
  }

  /** Removes the oldest events of all sessions if they are too many. */
  dropExcess(): void {
    while (this.bytes > this.#sizeMax) {
      const [oldest] = [...this.stores].sort((one, other) => one.oldestSentAt - other.oldestSentAt);
      oldest?.dropOldest();
    }
  }
}

/** The maximum number of stored events of a session, and their lifetime in milliseconds. */
const [EVENTS_MAX, EVENT_LIFETIME_MS] = [1_000, 300_000];

/** The latest events of one session, in the order in which they were sent. */
export class SentEvents implements Disposable {
  readonly #all = new Map<string, SentEvent>();
  readonly #shared: SentBytes;
  #lastId = 0;

  /** Creates an empty store of a session. */
  constructor(shared: SentBytes) {
    this.#shared = shared;
    shared.stores.add(this);
  }

  /** When the oldest stored event was sent; Infinity if there is none. */
  get oldestSentAt(): number {
    const [oldest] = this.#all.values();
    return oldest?.sentAt ?? Infinity;
  }

  /** Removes the oldest event. */
  dropOldest(): void {
    const [[id, oldest] = []] = this.#all;
    if (id !== undefined && oldest !== undefined) this.#remove(id, oldest);
  }

  /** Stores an event. Returns its id. */
  add(stream: string, text: string): string {
    const id = `${++this.#lastId}`;
    // After the end of the session, nothing is stored.
    if (!this.#shared.stores.has(this)) return id;
    const sentAt = performance.now();
    this.#all.set(id, { stream, text, sentAt });
    this.#shared.bytes += text.length;
    while (this.#all.size > EVENTS_MAX || this.oldestSentAt <= sentAt - EVENT_LIFETIME_MS) {
      this.dropOldest();
    }
    this.#shared.dropExcess();
    return id;
  }

  /** Returns the stream of an event; undefined if the event is not stored. */
  streamOf(id: string): string | undefined {
    return this.#all.get(id)?.stream;
  }

  /** Returns the messages that follow an event on its stream, with their ids. */
  messagesAfter(id: string): readonly (readonly [id: string, text: string])[] {
    const stream = this.streamOf(id);
    const all = [...this.#all];
    return all.slice(all.findIndex(([each]) => each === id) + 1)
      .filter(([, event]) => event.stream === stream && event.text !== "")
      .map(([each, { text }]) => [each, text]);
  }

  /** Removes all events. */
  [Symbol.dispose](): void {
    this.#shared.stores.delete(this);
    for (const [id, sentEvent] of this.#all) this.#remove(id, sentEvent);
  }

  #remove(id: string, { text }: SentEvent): void {
    this.#all.delete(id);
    this.#shared.bytes -= text.length;
  }
}
