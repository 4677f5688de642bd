/**
 * Caches answers to readers until the store changes.
 *
 * @module
 */

import type { RegistryRequest, RegistryResponse } from "@casys/pml/registry";

/** The maximum size of one cached answer and of the whole cache, in bytes. */
const MAX_BYTES = { answer: 64_000, all: 16_000_000 };

/** A cache of answers that is emptied when the state of the store changes. */
export class AnswerCache {
  readonly #readStamp: () => string | Promise<string>;
  readonly #answers = new Map<string, RegistryResponse>();
  #cachedStamp: string | undefined;
  #bytes = 0;

  /** Creates a cache. `readStamp` returns the state of the store; if it throws, the request fails. */
  constructor(readStamp: () => string | Promise<string>) {
    this.#readStamp = readStamp;
  }

  /** Returns the cached answer to a request, or calls `make()` and caches its answer. */
  async getOrMake(
    request: RegistryRequest,
    make: () => Promise<RegistryResponse>,
  ): Promise<RegistryResponse> {
    // The state is read before the answer, so that a change in the meantime invalidates the answer.
    const stamp = await this.#readStamp();
    if (stamp !== this.#cachedStamp) this.#reset(stamp);
    const { method, target, accept, ifNoneMatch } = request;
    const key = JSON.stringify([method, target, accept, ifNoneMatch]);
    const cached = this.#answers.get(key);
    if (cached !== undefined) return cached;
    const answer = await make();
    if (stamp === this.#cachedStamp) this.#add(key, answer);
    return answer;
  }

  #reset(stamp: string): void {
    this.#cachedStamp = stamp;
    this.#answers.clear();
    this.#bytes = 0;
  }

  #add(key: string, answer: RegistryResponse): void {
    const bytes = answer.body.length + key.length;
    if (answer.status !== 200 && answer.status !== 304 || bytes > MAX_BYTES.answer) return;
    if (this.#bytes + bytes > MAX_BYTES.all) {
      this.#answers.clear();
      this.#bytes = 0;
    }
    this.#answers.set(key, answer);
    this.#bytes += bytes;
  }
}
