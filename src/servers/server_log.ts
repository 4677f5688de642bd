/**
 * Stores the last lines that a server logged or wrote to its standard error, for `pml logs`. Each
 * line begins with the time.
 *
 * @module
 */

import { join } from "node:path";
import { withoutColours } from "../core/program_output.ts";
import { writeFileWhole } from "../io/cache_files.ts";
import { privateFolder, readPlainText } from "../io/private_files.ts";

/** The maximum size of the log of a server, in characters. */
const KEPT_MAX = 65_536;
/** How long lines are collected before they are written, in milliseconds. */
const COLLECT_MS = 300;

/** Returns the file with the lines of a server. */
export function serverLogPath(home: string, name: string): string {
  return join(home, "logs", `${name}.log`);
}

/** Writes the lines of one process of a server. Several processes may write the same file. */
export class ServerLog implements Disposable {
  readonly #home: string;
  readonly #name: string;
  #lines = "";
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Writes nothing yet. */
  constructor(home: string, name: string) {
    this.#home = home;
    this.#name = name;
  }

  /**
   * Adds whole lines without secrets, and removes colours. The lines are written after a delay, so
   * that no call waits for the file.
   */
  add(lines: string): void {
    const at = new Date().toISOString();
    const text = withoutColours(lines).replace(/^(?=.)/gm, `${at} `);
    this.#lines = (this.#lines + text).slice(-KEPT_MAX);
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
      // Replaces the whole file, so that another process never reads a part of it.
      writeFileWhole(path, (before + lines).slice(-KEPT_MAX));
    } catch {
      // The file is not essential: errors and the log contain the lines as well.
    }
  }
}
