/**
 * Tells the calls that wait for a server how its start comes along.
 *
 * @module
 */

import type { Call } from "../core/call.ts";

type Listener = NonNullable<Call["onProgress"]>;

/** The calls that wait, by their server. */
export class StartProgress {
  readonly #listeners = new Map<string, Set<Listener>>();
  #told = 0;

  /** Has a call told of the start of a server, while it runs `work`. */
  async during<T>(
    server: string,
    { onProgress, work }: {
      readonly onProgress: Call["onProgress"];
      readonly work: () => Promise<T>;
    },
  ): Promise<T> {
    const listener: Listener = (progress) => onProgress?.(progress);
    const known = this.#listeners.get(server) ?? new Set();
    this.#listeners.set(server, known.add(listener));
    try {
      return await work();
    } finally {
      known.delete(listener);
      if (known.size === 0) this.#listeners.delete(server);
    }
  }

  /** Tells all that wait for a server. */
  tell(server: string, message: string): void {
    // It has to grow, and what the server itself tells then may begin at nothing.
    const progress = -1 / ++this.#told;
    for (const listener of this.#listeners.get(server) ?? []) listener({ progress, message });
  }
}
