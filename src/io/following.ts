/**
 * Follows files: those that are there, and those that may come.
 *
 * @module
 */

import { dirname } from "node:path";
import { isInside } from "./place.ts";
import { onAbort, pause } from "./waiting.ts";

/** How long a folder must be quiet before a change is told: editors write in steps. */
const QUIET_MS = 40;

/** Paths that are followed until it is disposed, or the signal aborts. */
export class Following implements Disposable {
  readonly #paths: readonly string[];
  readonly #signal: AbortSignal;
  readonly #watcher: Deno.FsWatcher;
  readonly #closing: Disposable;

  /** Begins to watch; throws where the system cannot. */
  constructor(paths: readonly string[], signal: AbortSignal) {
    this.#paths = paths;
    this.#signal = signal;
    // Folders are watched, not files: a file may come later, or be put in the place of another.
    const folders = new Set(paths.map((path) => nearest(dirname(path))));
    this.#watcher = Deno.watchFs([...folders], { recursive: false });
    this.#closing = onAbort(signal, () => this.#watcher.close());
  }

  /** Returns a moment after one of the paths was touched, or on abort. */
  async change(): Promise<void> {
    for await (const { kind, paths: touched } of this.#watcher) {
      // Reading is an event too, and it must not lead to another reading.
      if (kind === "access") continue;
      if (touched.some((folder) => this.#paths.some((path) => isInside(folder, path)))) break;
    }
    await pause(QUIET_MS, this.#signal);
  }

  /** Stops watching. */
  [Symbol.dispose](): void {
    this.#closing[Symbol.dispose]();
    if (!this.#signal.aborted) this.#watcher.close();
  }
}

function nearest(path: string): string {
  try {
    if (Deno.statSync(path).isDirectory) return path;
  } catch {
    // The folder above is watched until this one is there.
  }
  return nearest(dirname(path));
}
