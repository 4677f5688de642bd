/**
 * Keeps the last lines that a server wrote to its standard error or logged, for `pml logs`. Each
 * begins with its time.
 *
 * @module
 */

import { join } from "node:path";
import { withoutColours } from "../core/program_output.ts";
import { keepFile } from "../io/kept.ts";
import { privateFolder, readPlainText } from "../io/private_files.ts";

/** How much is kept of a server, in characters. */
const KEPT = 65_536;
/** How long lines are collected before they are written, in milliseconds. */
const COLLECT_MS = 300;

/** Returns the file with the lines of a server. */
export function serverLogPath(home: string, name: string): string {
  return join(home, "logs", `${name}.log`);
}

/** Writes the lines of one process. Several processes may write the same file. */
export class ServerLog implements Disposable {
  readonly #home: string;
  readonly #name: string;
  #lines = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Takes the PML home and the name of the server; writes nothing yet. */
  constructor(home: string, name: string) {
    this.#home = home;
    this.#name = name;
  }

  /**
   * Takes whole lines without secrets. They are written soon, so that no call waits for them. Colours
   * are removed.
   */
  add(lines: string): void {
    const at = new Date().toISOString();
    const text = withoutColours(lines).replace(/^(?=.)/gm, `${at} `);
    this.#lines = (this.#lines + text).slice(-KEPT);
    this.#timer ??= setTimeout(() => this.#write(), COLLECT_MS);
  }

  /** Writes the remaining lines. */
  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    if (this.#lines !== "") this.#write();
  }

  #write(): void {
    this.#timer = undefined;
    const lines = this.#lines;
    this.#lines = "";
    try {
      privateFolder(join(this.#home, "logs"));
      const path = serverLogPath(this.#home, this.#name);
      const before = readPlainText(path) ?? "";
      // Replaced as a whole: another process that reads it now never sees a part.
      keepFile(path, (before + lines).slice(-KEPT));
    } catch {
      // Without the file, the lines are still in errors and in the log.
    }
  }
}
