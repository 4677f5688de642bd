/**
 * Checks the journal of a process: every record must be complete, in order, and chained to the one
 * before it.
 *
 * @module
 */

import { sha256 } from "../core/hash.ts";
import { openJournalFile, recordOf } from "./journal_lines.ts";

const NO_HASH = "0".repeat(64);

const LINE =
  /^(\{"seq":(\d{1,15}),"at":"[^"]+","prev":"([0-9a-f]{64})",.*),"hash":"([0-9a-f]{64})"\}$/;

/** The result of checking a journal. */
export interface JournalCheck {
  /** The number of complete records before the first bad one. */
  readonly records: number;
  /** The first bad record: its file, its line counted from 1, and what is wrong with it. */
  readonly bad?: { readonly file: string; readonly line: number; readonly reason: string };
  /** Whether the process closed the journal. If not, its end may be cut off. */
  readonly closed: boolean;
  /**
   * Whether the first record is the first of the process. Older files of a long run are removed.
   */
  readonly complete: boolean;
}

/** Reads the files of one process in their order, and returns the first record that was changed. */
export async function verifyJournal(paths: string | readonly string[]): Promise<JournalCheck> {
  const check = new Check();
  for (const file of typeof paths === "string" ? [paths] : paths) {
    using lines = openJournalFile(file);
    // Files are removed from the oldest on, so those that are left tell what is missing.
    if (lines === undefined) continue;
    let line = 0;
    for await (const text of lines.read()) {
      line += 1;
      if (!check.take(text, line === 1)) return check.result({ file, line });
    }
    if (lines.rest !== "" && !check.take("", line === 0)) {
      return check.result({ file, line: line + 1 });
    }
  }
  return check.result();
}

class Check {
  #records = 0;
  #seq = -1;
  #last = NO_HASH;
  #complete = true;
  #closed = false;
  #reason = "";

  take(line: string, opens: boolean): boolean {
    this.#reason = this.#fault(line, opens) ?? "";
    return this.#reason === "";
  }

  result(bad?: { readonly file: string; readonly line: number }): JournalCheck {
    return {
      ...(bad ? { bad: { ...bad, reason: this.#reason } } : {}),
      records: this.#records,
      closed: this.#closed,
      complete: this.#complete,
    };
  }

  #fault(line: string, opens: boolean): string | undefined {
    const [, text = "", seq, prev, hash = ""] = LINE.exec(line) ?? [];
    const record = recordOf(line);
    if (seq === undefined || !record) return "it is not a whole record";
    if (sha256(text) !== hash) return "its content does not fit its hash";
    if (opens && record.event !== "journal opened") return "the records before it are missing";
    if (this.#records === 0 && Number(seq) > 0) this.#complete = false;
    else if (prev !== this.#last || Number(seq) !== this.#seq + 1) {
      return "it does not follow the record before it";
    }
    this.#seq = Number(seq);
    this.#last = hash;
    this.#records += 1;
    if (record.event === "journal closed") this.#closed = true;
    return undefined;
  }
}
