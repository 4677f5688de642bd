/**
 * Reports the start of a server as progress of the calls that wait for it.
 *
 * @module
 */

import { ownProgress, type ProgressListener } from "../../protocol/progress.ts";

/** The progress listeners of the calls that wait, by server. */
export class StartProgress {
  readonly #listeners = new Map<string, Set<ProgressListener>>();

  /** Runs `work`. Meanwhile `onProgress` receives the progress of the server's start. */
  async runWithProgress<T>(
    server: string,
    { onProgress, work }: {
      readonly onProgress: ProgressListener | undefined;
      readonly work: () => Promise<T>;
    },
  ): Promise<T> {
    const listener: ProgressListener = (progress) => onProgress?.(progress);
    const listeners = this.#listeners.get(server) ?? new Set();
    this.#listeners.set(server, listeners.add(listener));
    try {
      return await work();
    } finally {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(server);
    }
  }

  /** Returns whether a call waits for the start of a server. */
  isAwaited(server: string): boolean {
    return this.#listeners.has(server);
  }

  /** Reports a message to all calls that wait for a server. */
  report(server: string, message: string): void {
    const progress = ownProgress("working", message);
    for (const listener of this.#listeners.get(server) ?? []) listener(progress);
  }
}
