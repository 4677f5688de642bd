/**
 * The lock of a workspace. It prevents other children from changing files during a step.
 *
 * @module
 */

/** A lock on a side file that all children of one workspace share. */
export class WorkspaceLock {
  readonly #file: Deno.FsFile;

  /** Opens the side file. Locking needs only read access. */
  constructor(path: string) {
    this.#file = Deno.openSync(path, { read: true });
  }

  /** Runs one step with the lock, shared by default. */
  during<T>(step: () => T, exclusive = false): T {
    this.#file.lockSync(exclusive);
    try {
      return step();
    } finally {
      this.#file.unlockSync();
    }
  }
}
