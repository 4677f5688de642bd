/**
 * Caches answers to readers until the store changes.
 *
 * @module
 */

import type { RegistryRequest, RegistryResponse } from "@casys/pml/registry";

/** The largest answer that is kept, and all of them, in bytes. */
const MOST = { one: 64_000, all: 16_000_000 };

/** Answers that were made already. */
export class KeptAnswers {
  readonly #stamp: () => string | Promise<string>;
  readonly #answers = new Map<string, RegistryResponse>();
  #of: string | undefined;
  #bytes = 0;

  /** Takes the function that returns the state of the store. If it throws, the request fails. */
  constructor(stamp: () => string | Promise<string>) {
    this.#stamp = stamp;
  }

  /** Returns the answer to a request, which is made if it is not kept. */
  async to(
    asked: RegistryRequest,
    make: () => Promise<RegistryResponse>,
  ): Promise<RegistryResponse> {
    // Reads the state before the answer, so that a change meanwhile invalidates it.
    const stamp = await this.#stamp();
    if (stamp !== this.#of) this.#begin(stamp);
    const { method, target, accept, ifNoneMatch } = asked;
    const key = JSON.stringify([method, target, accept, ifNoneMatch]);
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const made = await make();
    if (stamp === this.#of) this.#keep(key, made);
    return made;
  }

  #begin(stamp: string): void {
    this.#of = stamp;
    this.#answers.clear();
    this.#bytes = 0;
  }

  #keep(key: string, made: RegistryResponse): void {
    const bytes = made.body.length + key.length;
    if (made.status !== 200 && made.status !== 304 || bytes > MOST.one) return;
    if (this.#bytes + bytes > MOST.all) {
      this.#answers.clear();
      this.#bytes = 0;
    }
    this.#answers.set(key, made);
    this.#bytes += bytes;
  }
}
