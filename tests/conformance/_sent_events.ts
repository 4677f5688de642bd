/**
 * Keeps the messages of a session, so that a client whose stream broke can request the rest.
 *
 * @module
 */

import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface Sent {
  readonly stream: string;
  readonly message: JSONRPCMessage;
  readonly size: number;
}

/** The size of the messages of all sessions together. */
export interface SentBytes {
  bytes: number;
  readonly most: number;
}

/** The most messages that one session keeps, and for how long, in milliseconds. */
const [MOST_EVENTS, KEPT_MS] = [1_000, 300_000];

/** The latest events of one session, in the order in which they were sent. */
export class SentEvents implements EventStore, Disposable {
  readonly #all = new Map<string, Sent & { readonly at: number }>();
  readonly #shared: SentBytes;
  #last = 0;

  /** Creates an empty store. Removes its oldest events if all sessions keep too much together. */
  constructor(shared: SentBytes) {
    this.#shared = shared;
  }

  /** Keeps an event, and returns its id. */
  storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = `${++this.#last}`;
    const size = JSON.stringify(message).length;
    const at = performance.now();
    this.#all.set(id, { stream, message, size, at });
    this.#shared.bytes += size;
    for (const [first, kept] of this.#all) {
      const isFull = this.#shared.bytes > this.#shared.most || this.#all.size > MOST_EVENTS;
      if (!isFull && kept.at > at - KEPT_MS) break;
      this.#forget(first, kept);
    }
    return Promise.resolve(id);
  }

  /** Removes all events. */
  [Symbol.dispose](): void {
    for (const [id, kept] of this.#all) this.#forget(id, kept);
  }

  /** Returns the stream of an event, if the event is kept. */
  getStreamIdForEventId(id: string): Promise<string | undefined> {
    return Promise.resolve(this.#all.get(id)?.stream);
  }

  /** Sends the messages after an event of a stream again. Returns the stream. */
  async replayEventsAfter(
    id: string,
    { send }: Parameters<EventStore["replayEventsAfter"]>[1],
  ): Promise<string> {
    const stream = this.#all.get(id)?.stream ?? "";
    let isAfter = false;
    for (const [each, { stream: of, message }] of [...this.#all]) {
      if (isAfter && of === stream && Object.keys(message).length > 0) await send(each, message);
      isAfter ||= each === id;
    }
    return stream;
  }

  #forget(id: string, { size }: Sent): void {
    this.#all.delete(id);
    this.#shared.bytes -= size;
  }
}
