/**
 * Checks the journal of a process: every flush of records must be complete, in order, and chained
 * to the one before it. In version 1 of the format each record is a flush.
 *
 * @module
 */

import { sha256 } from "../core/hash.ts";
import type { JsonObject } from "../core/json.ts";
import { openJournalFile, recordOf } from "./journal_lines.ts";

const NO_HASH = "0".repeat(64);
/** A line of version 1. */
const OLD_LINE =
  /^(\{"seq":(\d{1,15}),"at":"[^"]+","prev":"([0-9a-f]{64})",.*),"hash":"([0-9a-f]{64})"\}$/;
const IS_OLD = /^\{"seq":\d{1,15},"at":"[^"]+","prev":/;
/** The end of a flush. A text in a record cannot match, because its quotes are escaped. */
const SEAL = /^(.*,"flush":(\d{1,15}),"prev":"([0-9a-f]{64})"),"hash":"([0-9a-f]{64})"\}$/;

/** The result of checking a journal. */
export interface JournalCheck {
  /** The number of records before the first bad flush. */
  readonly records: number;
  /** The first bad flush: its number, its file, its first line, and the reason. */
  readonly bad?: {
    readonly flush: number;
    readonly file: string;
    readonly line: number;
    readonly reason: string;
  };
  /** Whether the process closed the journal. If not, its end may be cut off. */
  readonly closed: boolean;
  /**
   * Whether the first record is the first of the process. Older files of a long run are removed.
   */
  readonly complete: boolean;
  /** The hash of the last flush until the time `until`, if there is such a flush. */
  readonly head?: string;
}

/**
 * Reads the files of one process in their order, up to the first flush that was changed. `until` is
 * the ISO time for `head` of the result.
 */
export async function verifyJournal(
  paths: string | readonly string[],
  until = "",
): Promise<JournalCheck> {
  const check = new JournalChecker(until);
  for (const file of typeof paths === "string" ? [paths] : paths) {
    using lines = openJournalFile(file);
    // The oldest files are removed first, so the first remaining record shows how many are missing.
    if (lines === undefined) continue;
    check.begin(file);
    for await (const text of lines.read()) {
      if (!check.take(text)) return check.result();
    }
    if (!check.end(lines.rest)) return check.result();
  }
  return check.result();
}

/** The last line of a flush. `text` is the hashed part. */
interface FlushEnd {
  readonly text: string;
  readonly flush: number;
  readonly prev: string;
  readonly hash: string;
}

class JournalChecker {
  readonly #until: string;
  #file = "";
  #lineNumber = 0;
  /** The number of the first line of the flush, counted from 1. */
  #firstLine = 1;
  /** The lines and the records of the flush so far. */
  #lines: string[] = [];
  #flushRecords: JsonObject[] = [];
  /** The number of records in all good flushes. */
  #recordCount = 0;
  /** The numbers of the last good record and flush, and the hash of that flush. */
  #seq = -1;
  #flush = 0;
  #lastHash = NO_HASH;
  #complete = true;
  #closed = false;
  #head: string | undefined;
  #reason = "";

  constructor(until: string) {
    this.#until = until;
  }

  /** Begins a file. */
  begin(file: string): void {
    this.#file = file;
    this.#lineNumber = 0;
    this.#firstLine = 1;
  }

  /** Takes a line. Returns false if its flush is bad. */
  take(line: string): boolean {
    this.#lineNumber += 1;
    this.#lines.push(line);
    const record = recordOf(line);
    if (record === undefined) return this.#fail("it is not a whole record");
    this.#flushRecords.push(record);
    const sealed = flushEndOf(line);
    if (sealed === undefined) return true;
    const text = [...this.#lines.slice(0, -1), sealed.text].join("\n");
    if (sha256(text) !== sealed.hash) return this.#fail("its content does not match its hash");
    return this.#close(sealed);
  }

  /** Ends a file. Returns false if its last flush is bad. */
  end(rest: string): boolean {
    if (rest !== "") return this.#fail("it is not a whole record");
    return this.#lines.length === 0 || this.#fail("its end is missing");
  }

  result(): JournalCheck {
    const [file, line, flush, reason] = [
      this.#file,
      this.#firstLine,
      this.#flush + 1,
      this.#reason,
    ];
    return {
      ...reason !== "" && { bad: { flush, file, line, reason } },
      records: this.#recordCount,
      closed: this.#closed,
      complete: this.#complete,
      ...this.#head !== undefined && { head: this.#head },
    };
  }

  #fail(reason: string): false {
    this.#reason = reason;
    return false;
  }

  #close({ flush, prev, hash }: FlushEnd): boolean {
    const records = this.#flushRecords;
    const [first, last] = [records[0], records.at(-1)];
    const isOpening = this.#firstLine === 1;
    if (isOpening && first?.event !== "journal opened") {
      return this.#fail("the records before it are missing");
    }
    // The older files of the process were removed.
    const isLater = this.#recordCount === 0 && Number(first?.seq) > 0;
    if (isLater) {
      [this.#complete, this.#flush, this.#seq] = [false, flush - 1, Number(first?.seq) - 1];
    }
    const follows = (isLater || prev === this.#lastHash) && flush === this.#flush + 1 &&
      records.every(({ seq }, index) => seq === this.#seq + 1 + index);
    if (!follows) return this.#fail("it does not follow the records before it");
    this.#seq += records.length;
    this.#recordCount += records.length;
    [this.#flush, this.#lastHash] = [flush, hash];
    if (records.some(({ event }) => event === "journal closed")) this.#closed = true;
    if (String(last?.at) <= this.#until) this.#head = hash;
    [this.#lines, this.#flushRecords, this.#firstLine] = [[], [], this.#lineNumber + 1];
    return true;
  }
}

function flushEndOf(line: string): FlushEnd | undefined {
  if (IS_OLD.test(line)) {
    const [, text = "", seq, prev = "", hash = ""] = OLD_LINE.exec(line) ?? [];
    return { text, flush: Number(seq) + 1, prev, hash };
  }
  const [, text = "", flush, prev = "", hash = ""] = SEAL.exec(line) ?? [];
  return flush === undefined ? undefined : { text, flush: Number(flush), prev, hash };
}
