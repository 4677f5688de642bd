/**
 * The resources that clients follow, of servers that have to run for it.
 *
 * @module
 */

/** A resource, and until when it is followed. */
export interface Following {
  readonly server: string;
  readonly uri: string;
  readonly signal: AbortSignal;
  /** Told when the server has agreed. */
  readonly onAgreed: () => void;
}

/** Keeps a server running and has it tell of a resource; ends with the signal, or the server. */
export type Follow = (following: Following) => Promise<void>;

interface Followed {
  count: number;
  readonly end: AbortController;
  readonly agreed: PromiseWithResolvers<void>;
}

const WAIT_MS = 500;
const WAIT_MAX_MS = 30_000;

/** Counts who follows what, and follows it anew where a server ended. */
export class Subscriptions implements Disposable {
  readonly #followed = new Map<string, Followed>();
  readonly #follow: Follow;
  readonly #onLost: (server: string, error: unknown) => void;

  /** Follows by `follow`; a server that has to be asked again is told to `onLost`. */
  constructor(follow: Follow, onLost: (server: string, error: unknown) => void) {
    this.#follow = follow;
    this.#onLost = onLost;
  }

  /** Follows a resource, for one more; throws where the server does not agree. */
  async add(server: string, uri: string): Promise<void> {
    const key = `${server} ${uri}`;
    const known = this.#followed.get(key);
    if (known !== undefined) {
      known.count++;
      return await known.agreed.promise;
    }
    const [end, agreed] = [new AbortController(), Promise.withResolvers<void>()];
    this.#followed.set(key, { count: 1, end, agreed });
    const onAgreed = () => agreed.resolve();
    void this.#keep({ server, uri, signal: end.signal, onAgreed }, (error) => agreed.reject(error));
    await agreed.promise.catch((error) => {
      this.#followed.delete(key);
      end.abort();
      throw error;
    });
  }

  /** Follows a resource for one less. */
  remove(server: string, uri: string): void {
    const key = `${server} ${uri}`;
    const known = this.#followed.get(key);
    if (known === undefined || --known.count > 0) return;
    this.#followed.delete(key);
    known.end.abort();
  }

  /** Follows nothing any more. */
  [Symbol.dispose](): void {
    for (const { end } of this.#followed.values()) end.abort();
    this.#followed.clear();
  }

  async #keep(following: Following, onLost: (error: unknown) => void): Promise<void> {
    const { server, signal } = following;
    for (let wait = WAIT_MS; !signal.aborted; wait = Math.min(wait * 2, WAIT_MAX_MS)) {
      const since = Date.now();
      try {
        await this.#follow(following);
      } catch (error) {
        // The first time it is the answer to who asked; later it is only a pity.
        onLost(error);
        if (!signal.aborted) this.#onLost(server, error);
      }
      // One that ran for long is not one that always fails.
      if (Date.now() - since > WAIT_MAX_MS) wait = WAIT_MS;
      await pause(wait, signal);
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const end = () => {
    clearTimeout(timer);
    resolve();
  };
  if (signal.aborted) end();
  signal.addEventListener("abort", end, { once: true });
  return promise.finally(() => signal.removeEventListener("abort", end));
}
