/**
 * Watches files, including files that do not exist yet.
 *
 * @module
 */

import { dirname } from "node:path";
import { infoAfterLinks, isInside } from "./path_info.ts";
import { onAbort, pause } from "./waiting.ts";

/** How long to wait after a change, in milliseconds: editors write in several steps. */
const QUIET_MS = 40;

/** Watches paths until it is disposed or the signal aborts. */
export class PathWatcher implements Disposable {
  readonly #paths: readonly string[];
  readonly #signal: AbortSignal;
  readonly #watcher: Deno.FsWatcher;
  readonly #abortListener: Disposable;

  /** Begins to watch. Throws if the system cannot. */
  constructor(paths: readonly string[], signal: AbortSignal) {
    this.#paths = paths;
    this.#signal = signal;
    // Folders are watched, not files: a file may be created later, or replaced.
    const folders = new Set(paths.map((path) => nearestFolder(dirname(path))));
    this.#watcher = Deno.watchFs([...folders], { recursive: false });
    this.#abortListener = onAbort(signal, () => this.#watcher.close());
  }

  /** Resolves shortly after one of the paths changed, or on abort. */
  async change(): Promise<void> {
    for await (const { kind, paths: touched, flag } of this.#watcher) {
      // The caller reads the files after a change. Reading is an event, too, and must be ignored.
      if (kind === "access") continue;
      // The queue of the system overflowed: any of the paths may have changed.
      if (flag === "rescan" || touched.length === 0) break;
      if (touched.some((changed) => this.#paths.some((path) => isInside(changed, path)))) break;
    }
    await pause(QUIET_MS, this.#signal);
  }

  /** Stops watching. */
  [Symbol.dispose](): void {
    this.#abortListener[Symbol.dispose]();
    if (!this.#signal.aborted) this.#watcher.close();
  }
}

function nearestFolder(path: string): string {
  // The parent folder is watched until this one exists.
  return infoAfterLinks(path)?.isDirectory ? path : nearestFolder(dirname(path));
}
