/**
 * The resources that clients follow, of servers that have to run for it.
 *
 * @module
 */

import { pause, unlessAborted } from "../io/waiting.ts";
import { Answered } from "./_peer.ts";

/** A resource of a server, or a task. */
export interface Followed {
  readonly server: string;
  /** The address of the resource, or the id of the task. */
  readonly uri: string;
  readonly isTask?: boolean;
}

/** A resource, and until when it is followed. */
export interface Following extends Followed {
  readonly signal: AbortSignal;
  /** Told when the server has agreed. */
  readonly onAgreed: () => void;
}

/** Keeps a server running and has it tell of a resource; ends with the signal, or the server. */
export type Follow = (following: Following) => Promise<void>;

interface Entry {
  count: number;
  readonly end: AbortController;
  /** Ends what is there now, so that it is followed anew. */
  again: AbortController;
  readonly agreed: PromiseWithResolvers<void>;
}

const WAIT_MS = 500;
const WAIT_MAX_MS = 30_000;

/** Counts who follows what, and follows it anew where a server ended. */
export class Subscriptions implements Disposable {
  readonly #entries = new Map<string, Entry>();
  readonly #follow: Follow;
  readonly #onLost: (server: string, error: unknown) => void;

  /** Follows by `follow`; a server that has to be asked again is told to `onLost`. */
  constructor(follow: Follow, onLost: (server: string, error: unknown) => void) {
    this.#follow = follow;
    this.#onLost = onLost;
  }

  /**
   * Follows a resource, for one more; throws where the server does not agree, or not before the
   * signal aborts.
   */
  async add(followed: Followed, signal: AbortSignal): Promise<void> {
    const key = keyOf(followed);
    const entry = this.#entries.get(key) ?? this.#begin(followed);
    entry.count++;
    try {
      await unlessAborted(entry.agreed.promise, signal);
    } catch (error) {
      this.#leave(key, entry);
      throw error;
    }
  }

  /** Follows a resource for one less. */
  remove(followed: Followed): void {
    const key = keyOf(followed);
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#leave(key, entry);
  }

  /** Follows everything anew: what holds may be another thing. */
  again(): void {
    for (const { again } of this.#entries.values()) again.abort();
  }

  /** Follows nothing any more. */
  [Symbol.dispose](): void {
    for (const { end } of this.#entries.values()) end.abort();
    this.#entries.clear();
  }

  #begin(followed: Followed): Entry {
    const agreed = Promise.withResolvers<void>();
    // Who adds waits for it; later nobody does.
    agreed.promise.catch(() => {});
    const own = { count: 0, end: new AbortController(), again: new AbortController(), agreed };
    this.#entries.set(keyOf(followed), own);
    void this.#keep(followed, own);
    return own;
  }

  #leave(key: string, entry: Entry): void {
    if (--entry.count > 0) return;
    entry.end.abort();
    // Another may stand there by now.
    if (this.#entries.get(key) === entry) this.#entries.delete(key);
  }

  async #keep(followed: Followed, entry: Entry): Promise<void> {
    const { end: { signal: end }, agreed } = entry;
    for (let wait = WAIT_MS; !end.aborted; wait = Math.min(wait * 2, WAIT_MAX_MS)) {
      const since = Date.now();
      entry.again = new AbortController();
      const signal = AbortSignal.any([end, entry.again.signal]);
      try {
        await this.#follow({ ...followed, signal, onAgreed: agreed.resolve });
      } catch (error) {
        // The first time it is the answer to who asked; later it is only a pity.
        agreed.reject(error);
        if (!signal.aborted) this.#onLost(followed.server, error);
        // One that does not want to is not asked again.
        if (error instanceof Answered) return;
      }
      // One that ran for long is not one that always fails.
      if (Date.now() - since > WAIT_MAX_MS) wait = WAIT_MS;
      if (!entry.again.signal.aborted) await pause(wait, signal);
    }
  }
}

function keyOf({ server, uri, isTask = false }: Followed): string {
  return `${server} ${isTask} ${uri}`;
}
