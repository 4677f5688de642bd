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
export interface SentBytes {
  bytes: number;
  readonly most: number;
}

/** The maximum number of stored messages of a session, and their lifetime in milliseconds. */
const [MOST_EVENTS, KEPT_MS] = [1_000, 300_000];

/** The latest events of one session, in the order in which they were sent. */
export class SentEvents implements Disposable {
  readonly #all = new Map<string, Sent>();
  readonly #shared: SentBytes;
  #last = 0;

  /** Creates an empty store. Removes its oldest events if all sessions together store too much. */
  constructor(shared: SentBytes) {
    this.#shared = shared;
  }

  /** Stores an event. Returns its id. */
  add(stream: string, text: string): string {
    const id = `${++this.#last}`;
    const at = performance.now();
    this.#all.set(id, { stream, text, at });
    this.#shared.bytes += text.length;
    for (const [first, kept] of this.#all) {
      const isFull = this.#shared.bytes > this.#shared.most || this.#all.size > MOST_EVENTS;
      if (!isFull && kept.at > at - KEPT_MS) break;
      this.#forget(first, kept);
    }
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
    for (const [id, kept] of this.#all) this.#forget(id, kept);
  }

  #forget(id: string, { text }: Sent): void {
    this.#all.delete(id);
    this.#shared.bytes -= text.length;
  }
}
