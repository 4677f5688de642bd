/**
 * The definitions of tools whose texts the user has read in a question and approved.
 *
 * @module
 */

import { join } from "node:path";
import { isRegularFile, type WarningLog, writePrivate } from "../io/private_files.ts";

/** The folder `read` in a PML home: one file for each hash of a definition. */
export class ReadDefinitions {
  readonly #folder: string;
  readonly #log: WarningLog;
  readonly #known = new Set<string>();

  /** Takes the folder of the home; reads nothing. */
  constructor(home: string, log: WarningLog) {
    this.#folder = join(home, "read");
    this.#log = log;
  }

  /** Returns whether the user has read a definition with this hash. */
  has(hash: string): boolean {
    return this.#known.has(hash) || isRegularFile(this.#path(hash));
  }

  /**
   * Records that the user has read a definition. If this fails, a later question shows it again.
   */
  async add(hash: string): Promise<void> {
    this.#known.add(hash);
    if (isRegularFile(this.#path(hash))) return;
    await writePrivate(this.#path(hash), {}).catch((error) =>
      this.#log.warn(`Cannot record that a definition was read: ${error.message}`)
    );
  }

  #path(hash: string): string {
    return join(this.#folder, `${hash.replace(/[^\w-]/g, "")}.json`);
  }
}
