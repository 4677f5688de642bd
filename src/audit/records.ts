/**
 * Writes records to the journal of this process. The first record opens the journal. Of several
 * failures in a row, only the first one is logged.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { asPmlError, messageOf, type PmlError } from "../core/errors.ts";
import type { EndRecord, Journal, JournalFailures, JournalRecord } from "./journal.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";

/** Opens the journal. */
export interface JournalOpener {
  /** Opens the journal. On failure, calls `failures.failed()` with the error and throws it. */
  open(failures: JournalFailures): Journal;
}

/** The journal, opened when it is first needed. */
export class Records implements JournalFailures, Disposable {
  readonly #opener: JournalOpener;
  readonly #log: Pick<Log, "error" | "info">;
  readonly #metrics: Pick<Metrics, "recorded">;
  readonly #deferred: (() => void)[] = [];
  #onRecord: ((record: JournalRecord) => void) | undefined;
  #journal: Journal | undefined;
  #isBroken = false;

  /** Opens nothing yet, because a process without calls writes no journal. */
  constructor(
    opener: JournalOpener,
    log: Pick<Log, "error" | "info">,
    metrics: Pick<Metrics, "recorded">,
  ) {
    this.#opener = opener;
    this.#log = log;
    this.#metrics = metrics;
  }

  /** Writes a record; rejects with AUDIT_UNAVAILABLE. */
  async write(record: JournalRecord): Promise<void> {
    await this.#opened().write(record);
    this.#logRecovery();
  }

  /** Calls a function with each start and end of a call from now on. */
  watch(onRecord: (record: JournalRecord) => void): void {
    this.#onRecord = onRecord;
  }

  /** Runs the rest of a call after its answer is sent, so that the client does not wait for it. */
  later(work: () => void): void {
    if (this.#deferred.push(work) === 1) setImmediate(() => this.#catchUp());
  }

  /**
   * Writes the end of a call whose start was written. Returns at once: the end is written together
   * with the next records, or after a few milliseconds.
   */
  end(record: EndRecord): void {
    this.#metrics.recorded(record);
    this.#onRecord?.(record);
    this.#opened().end(record);
  }

  /** Writes the start of a call. Resolves when it is written, or with AUDIT_UNAVAILABLE. */
  start(record: JournalRecord): Promise<PmlError | undefined> {
    this.#onRecord?.(record);
    return new Promise((resolve) => {
      try {
        this.#opened().append(record, (error) => {
          if (error === undefined) this.#logRecovery();
          resolve(error);
        });
      } catch (error) {
        resolve(asPmlError(error));
      }
    });
  }

  /**
   * Writes a record without waiting. With `isLost` (the start of the call was not recorded), the
   * record only counts in the metrics.
   */
  note(record: JournalRecord, isLost = false): void {
    this.#metrics.recorded(record);
    this.#onRecord?.(record);
    if (isLost) return;
    try {
      this.#opened().append(record);
    } catch {
      // The failed attempt to open it was logged.
    }
  }

  /** Closes the journal. */
  [Symbol.dispose](): void {
    this.#catchUp();
    this.#journal?.[Symbol.dispose]();
  }

  /** Logs the first failure of several in a row. */
  failed({ message }: PmlError): void {
    if (!this.#isBroken) this.#log.error(message);
    this.#isBroken = true;
  }

  /** Logs that the journal works again, if it did not. */
  #logRecovery(): void {
    if (this.#isBroken) this.#log.info("The journal is written again");
    this.#isBroken = false;
  }

  #catchUp(): void {
    for (const work of this.#deferred.splice(0)) {
      try {
        work();
      } catch (error) {
        this.#log.error(`Cannot finish the record of a call: ${messageOf(error)}`);
      }
    }
  }

  #opened(): Journal {
    return this.#journal ??= this.#opener.open(this);
  }
}
