/**
 * Writes records to the journal of this process: it is opened by the first one, and that it cannot be
 * written is told once.
 *
 * @module
 */

import { asPmlError } from "../core/errors.ts";
import type { Journal, JournalRecord } from "./journal.ts";
import type { Log } from "./log.ts";

/** What records are written to. */
export interface RecordsOptions {
  /** Opens the journal; throws AUDIT_UNAVAILABLE. */
  readonly open: (onFailure: (error: unknown) => void) => Journal;
  readonly log: Pick<Log, "error" | "info">;
  /** Is told each record that nobody waits for. */
  readonly onNote: (record: JournalRecord) => void;
}

/** The journal, opened when it is needed. */
export class Records implements Disposable {
  readonly #options: RecordsOptions;
  #journal: Journal | undefined;
  #isBroken = false;

  /** Opens nothing: a start that serves no call writes nothing. */
  constructor(options: RecordsOptions) {
    this.#options = options;
  }

  /** Writes a record; rejects with AUDIT_UNAVAILABLE. */
  async write(record: JournalRecord): Promise<void> {
    await this.#opened().write(record);
    if (!this.#isBroken) return;
    this.#isBroken = false;
    this.#options.log.info("The journal is written again");
  }

  /** Writes a record that nobody waits for; the end of what has no start is counted only. */
  note(record: JournalRecord, isLost = false): void {
    this.#options.onNote(record);
    if (isLost) return;
    try {
      this.#opened().note(record);
    } catch {
      // It was told when it was tried to open it.
    }
  }

  /** Closes the journal. */
  [Symbol.dispose](): void {
    this.#journal?.[Symbol.dispose]();
  }

  #opened(): Journal {
    const failed = (error: unknown) => {
      if (!this.#isBroken) this.#options.log.error(asPmlError(error).message);
      this.#isBroken = true;
    };
    try {
      return this.#journal ??= this.#options.open(failed);
    } catch (error) {
      failed(error);
      throw error;
    }
  }
}
