/**
 * The lock of a workspace: it keeps other children from changing what a step has just checked.
 *
 * @module
 */

/** A lock on a side file that all children of one workspace share. */
export class WorkspaceLock {
  readonly #file: Deno.FsFile;

  /** Opens the side file; reading is enough to lock it. */
  constructor(path: string) {
    this.#file = Deno.openSync(path, { read: true });
  }

  /** Runs one step beside other readers. */
  shared<T>(step: () => T): T {
    return this.alone(step, false);
  }

  /** Runs one step alone. */
  alone<T>(step: () => T, exclusive = true): T {
    this.#file.lockSync(exclusive);
    try {
      return step();
    } finally {
      this.#file.unlockSync();
    }
  }
}
