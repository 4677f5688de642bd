/**
 * Writes records to the journal of this process. The first record opens the journal. If several
 * writes fail in a row, only the first failure is logged.
 *
 * @module
 */

import { setImmediate } from "node:timers";
import { asPmlError, messageOf, type PmlError } from "../core/errors.ts";
import type { EndRecord, Journal, JournalFailures, JournalRecord } from "./journal.ts";
import type { Log } from "./log.ts";
import type { CalledTool, Metrics } from "./metrics.ts";

/** Opens the journal. */
export interface JournalOpener {
  /**
   * Opens the journal. On failure, calls `failures.onFailedWrite()` with the error and throws it.
   */
  open(failures: JournalFailures): Journal;
}

/** The journal, opened when it is first needed. */
export class Records implements JournalFailures, Disposable {
  readonly #opener: JournalOpener;
  readonly #log: Pick<Log, "error" | "info">;
  readonly #metrics: Pick<Metrics, "countRecord">;
  readonly #deferred: (() => void)[] = [];
  /** Undefined without listeners, so that records do not become slower. */
  #onRecord: ((record: JournalRecord) => void) | undefined;
  readonly #listeners = new Set<(record: JournalRecord) => void>();
  #journal: Journal | undefined;
  #isBroken = false;

  /** Opens nothing yet, because a process without calls writes no journal. */
  constructor(
    opener: JournalOpener,
    log: Pick<Log, "error" | "info">,
    metrics: Pick<Metrics, "countRecord">,
  ) {
    this.#opener = opener;
    this.#log = log;
    this.#metrics = metrics;
  }

  /** Writes a record; rejects with AUDIT_UNAVAILABLE. */
  async write(record: JournalRecord): Promise<void> {
    await this.#openJournal().write(record);
    this.#logRecovery();
  }

  /** Calls a function with each record from now on, until the result is disposed. */
  watch(onRecord: (record: JournalRecord) => void): Disposable {
    const listeners = this.#listeners.add(onRecord);
    this.#onRecord = (record) => {
      for (const listener of listeners) listener(record);
    };
    return {
      [Symbol.dispose]: () => {
        listeners.delete(onRecord);
        if (listeners.size === 0) this.#onRecord = undefined;
      },
    };
  }

  /** Runs work of a call after its answer is sent, so that the client does not wait for it. */
  runAfterAnswer(work: () => void): void {
    if (this.#deferred.push(work) === 1) setImmediate(() => this.#runDeferred());
  }

  /**
   * Writes the end of a call whose start was written. Returns at once: the end is written together
   * with the next records, or after a few milliseconds.
   */
  end(record: EndRecord, call?: CalledTool): void {
    this.#metrics.countRecord(record, call);
    this.#onRecord?.(record);
    this.#openJournal().end(record);
  }

  /** Writes the start of a call. Resolves when it is written, or with AUDIT_UNAVAILABLE. */
  start(record: JournalRecord): Promise<PmlError | undefined> {
    this.#onRecord?.(record);
    return new Promise((resolve) => {
      try {
        this.#openJournal().append(record, (error) => {
          if (error === undefined) this.#logRecovery();
          resolve(error);
        });
      } catch (error) {
        resolve(asPmlError(error));
      }
    });
  }

  /**
   * Writes a record without waiting. If `isLost`, the start of the call was not recorded, so that
   * only the metrics and the listeners get the record.
   */
  note(record: JournalRecord, isLost = false, call?: CalledTool): void {
    this.#metrics.countRecord(record, call);
    this.#onRecord?.(record);
    if (isLost) return;
    try {
      this.#openJournal().append(record);
    } catch {
      // The opener has logged the error.
    }
  }

  /** Closes the journal. */
  [Symbol.dispose](): void {
    this.#runDeferred();
    this.#journal?.[Symbol.dispose]();
  }

  /** Logs the first failure of several in a row. */
  onFailedWrite({ message }: PmlError): void {
    if (!this.#isBroken) this.#log.error(message);
    this.#isBroken = true;
  }

  /** Logs that the journal works again, if it did not. */
  #logRecovery(): void {
    if (this.#isBroken) this.#log.info("The journal is written again");
    this.#isBroken = false;
  }

  #runDeferred(): void {
    for (const work of this.#deferred.splice(0)) {
      try {
        work();
      } catch (error) {
        this.#log.error(`Cannot finish the record of a call: ${messageOf(error)}`);
      }
    }
  }

  #openJournal(): Journal {
    return this.#journal ??= this.#opener.open(this);
  }
}
