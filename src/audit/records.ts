/**
 * Writes records to the journal of this process. The first record opens it. If it cannot be
 * written, the log says so once.
 *
 * @module
 */

import { asPmlError, type PmlError } from "../core/errors.ts";
import type { EndRecord, Journal, JournalRecord } from "./journal.ts";
import type { Log } from "./log.ts";

/** The options of `Records`. */
export interface RecordsOptions {
  /** Opens the journal. Throws AUDIT_UNAVAILABLE if it cannot. */
  readonly open: (onFailure: (error: unknown) => void) => Journal;
  readonly log: Pick<Log, "error" | "info">;
  /** Is called with each record that nobody waits for. */
  readonly onNote: (record: JournalRecord) => void;
}

/** The journal, opened when it is first needed. */
export class Records implements Disposable {
  readonly #options: RecordsOptions;
  #journal: Journal | undefined;
  #isBroken = false;

  /** Opens nothing: a process without calls writes nothing. */
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

  /** Whether the journal is open, and its last record could be written. */
  get isSound(): boolean {
    return this.#journal !== undefined && !this.#isBroken;
  }

  /** Writes the end of a call whose start was written, at the latest soon. */
  end(record: EndRecord): void {
    this.#options.onNote(record);
    this.#opened().end(record);
  }

  /** Writes a record to a sound journal. Calls `done` when it is written, or with the error. */
  begin(record: JournalRecord, done: (error?: PmlError) => void): void {
    this.#opened().append(record, done);
  }

  /**
   * Writes a record without waiting. If the start of the call was not recorded (`isLost`), its end
   * is only counted.
   */
  note(record: JournalRecord, isLost = false): void {
    this.#options.onNote(record);
    if (isLost) return;
    try {
      this.#opened().append(record);
    } catch {
      // The failed attempt to open it was logged.
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
