/**
 * The journal: records of which tool was called, by whom, under which rule and with what outcome.
 * The records are lines of JSON. The last record of each flush has the hash of the flush and of the
 * one before it.
 *
 * @module
 */

import { hash } from "node:crypto";
import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import { privateFolder } from "../io/private_files.ts";
import type { Redactor } from "./redact.ts";
import { JournalFile, pruneJournal, removeIfThere } from "./_journal_file.ts";

/** The version of the format. In version 1 each record had its own hash. */
const VERSION = 2;
/** The `prev` of the first flush of a process. */
const NO_HASH = "0".repeat(64);
/** How long the end of a call may wait for other records, in milliseconds. */
const END_MS = 5;
/** How many characters of records may wait. */
const MOST_WAITING = 65_536;
const LONGEST_TEXT = 500;
const LONGEST_RECORD = 16_384;
/** The errors of a file, disk, quota or share that is full. */
const FULL = /\(os error (27|28|112|122)\)/;

/** The record before a call runs. */
export interface StartRecord {
  readonly kind: "start";
  readonly callId: string;
  readonly actor: string;
  readonly via: string;
  readonly tool: string;
  /** The id of the run that made the call. All calls of one run have the same. */
  readonly run?: string;
  /** The id of the client's request that the call belongs to, as JSON. */
  readonly request?: string;
  /** The decision of the rules, with the pattern and the file that decided. */
  readonly verdict?: string;
  readonly rule?: string;
  readonly source?: string;
  /** The user's answer, if the call carries one. */
  readonly answer?: string;
  /** The shape only: even from a hash, a short argument could be guessed. */
  readonly arguments: Json;
  /** Set if the shape is too large for a record. */
  readonly argumentsOmitted?: true;
  /** The bytes of the arguments as JSON, if their shape was omitted. */
  readonly argumentsBytes?: number;
}

/** The record after a call, whatever its outcome. */
export interface EndRecord {
  readonly kind: "end";
  readonly callId: string;
  readonly outcome: "result" | "tool error" | "ask" | "failed";
  /** The status of the task that the result describes. */
  readonly task?: string;
  readonly code?: string;
  readonly ms: number;
  readonly size?: number;
}

/** The record of approvals, trust, changes of the configuration, and errors outside of calls. */
export interface EventRecord {
  readonly kind: "event";
  readonly event: string;
  readonly actor?: string;
  readonly about?: JsonObject;
}

/** One record of the journal. */
export type JournalRecord = StartRecord | EndRecord | EventRecord;

/** Receives the failures of a journal. */
export interface JournalFailures {
  /** Receives the error of a failed write, once for each write. */
  failed(error: PmlError): void;
}

/** The options of a journal. */
export interface JournalOptions {
  readonly redactor: Redactor;
  /** The size in bytes after which the next file begins. */
  readonly fileBytes: number;
  /** How many files of one process are kept. */
  readonly filesKept: number;
}

/** A place in the chain of records. */
interface Chain {
  seq: number;
  flush: number;
  prev: string;
}

/** Is called when a record was written, or with the reason why not. */
type Done = (error?: PmlError) => void;

/**
 * Writes records in order, and all that come before the next microtask in one write. The write is
 * synchronous: it only copies to the kernel's memory (1 µs for each record; the thread pool would
 * take 33), so no records pile up.
 */
export class Journal implements Disposable {
  readonly #folder: string;
  readonly #options: JournalOptions;
  readonly #failures: JournalFailures;
  readonly #run: string;
  #file: JournalFile | undefined;
  #files = 0;
  /** The paths of the files that were created and not removed. */
  readonly #made: string[] = [];
  /** The numbers of the next record and of the next flush, and the hash of the flush before it. */
  #chain: Chain = { seq: 0, flush: 1, prev: NO_HASH };
  /** The end of the chain in the files. A failed write goes back to it. */
  #written: Readonly<Chain> = { ...this.#chain };
  /** The present millisecond, as a number and as the text in records. */
  #now = 0;
  #at = "";
  /** The records that wait, the last one without its end, and the callbacks of their callers. */
  #lines = "";
  #waiting: Done[] = [];
  /** The reason why the waiting records cannot be written. */
  #lost: unknown;
  /** Whether the next microtask writes the waiting records. */
  #isAwaited = false;
  /** The timer that writes the ends of calls if no other record follows. */
  #late: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  private constructor(folder: string, options: JournalOptions, failures: JournalFailures) {
    this.#folder = folder;
    this.#options = options;
    this.#failures = failures;
    // The random part makes the names of two journals in one process different, and prevents others
    // from creating the file first.
    const started = new Date().toISOString().replaceAll(":", "-");
    const id = crypto.randomUUID().slice(0, 8);
    this.#run = `${started}-${Deno.pid}-${id}`;
  }

  /**
   * Opens the journal of this process in `HOME/journal`. Throws AUDIT_UNAVAILABLE if it cannot be
   * written.
   */
  static open(home: string, options: JournalOptions, failures: JournalFailures): Journal {
    const journal = new Journal(join(home, "journal"), options, failures);
    try {
      journal.#begin();
    } catch (error) {
      throw journal.#fail(error);
    }
    return journal;
  }

  /** Writes a record. Resolves when the kernel has it; rejects with AUDIT_UNAVAILABLE. */
  write(record: JournalRecord): Promise<void> {
    return new Promise((resolve, reject) => {
      this.append(record, (error) => error ? reject(error) : resolve());
    });
  }

  /**
   * Writes a record with all others that come before the next microtask. Calls `done` when the
   * kernel has it, or with AUDIT_UNAVAILABLE. `failures` get a failure, too.
   */
  append(record: JournalRecord, done?: Done): void {
    if (!this.#isAwaited) queueMicrotask(() => this.#flush());
    this.#isAwaited = true;
    this.#place(record, done);
  }

  /** Writes the end of a call with the next records, or soon. */
  end(record: EndRecord): void {
    this.#late ??= setTimeout(() => {
      this.#late = undefined;
      this.#flush();
    }, END_MS);
    this.#place(record);
  }

  /**
   * Writes all waiting records and a last record that marks the journal as complete, and closes it.
   */
  [Symbol.dispose](): void {
    if (this.#closed) return;
    clearTimeout(this.#late);
    this.append({ kind: "event", event: "journal closed" });
    this.#flush();
    this.#closed = true;
    this.#leave();
    try {
      // Old files are removed here and not at the start, because the user waits for the start.
      const { fileBytes, filesKept } = this.#options;
      pruneJournal(this.#folder, { keep: this.#run, bytes: fileBytes * filesKept });
    } catch (error) {
      this.#fail(error);
    }
  }

  #place(record: JournalRecord, done?: Done): void {
    if (this.#closed) {
      const lost = this.#fail(new Error("the journal is closed"));
      return done?.(lost);
    }
    if (this.#lines === "") this.#look();
    this.#lines += `${this.#lines === "" ? "" : "}\n"}${this.#lineOf(record)}`;
    if (done) this.#waiting.push(done);
    if (this.#lines.length >= MOST_WAITING) this.#flush();
  }

  /** Returns the line of a record without its end, and counts it. */
  #lineOf(record: JournalRecord): string {
    const now = Date.now();
    if (now !== this.#now) {
      this.#now = now;
      this.#at = new Date(now).toISOString();
    }
    const body = bodyOf(record, this.#options.redactor);
    return `{"seq":${this.#chain.seq++},"at":"${this.#at}",${body}`;
  }

  /** Ends a flush with its hash, which covers everything before it. */
  #sealed(lines: string): string {
    const { flush, prev } = this.#chain;
    const text = `${lines},"flush":${flush},"prev":"${prev}"`;
    const own = hash("sha256", text, "hex");
    this.#chain.flush++;
    this.#chain.prev = own;
    return `${text},"hash":"${own}"}\n`;
  }

  #flush(): void {
    const lines = this.#lines;
    this.#isAwaited = false;
    if (lines === "") return;
    const waiting = this.#waiting;
    this.#lines = "";
    this.#waiting = [];
    let lost: PmlError | undefined;
    try {
      if (this.#file === undefined) throw this.#lost;
      this.#file.append(this.#sealed(lines));
      this.#written = { ...this.#chain };
    } catch (error) {
      this.#chain = { ...this.#written };
      lost = this.#fail(error);
    }
    for (const done of waiting) done(lost);
  }

  /** Opens a file for the next records if needed. If it fails, they fail, and later ones retry. */
  #look(): void {
    const { fileBytes, filesKept } = this.#options;
    try {
      this.#file?.lookAtPlace();
      if (this.#file && this.#file.size < fileBytes) return;
      this.#leave();
      this.#begin();
      for (const old of this.#made.splice(0, this.#made.length - filesKept)) removeIfThere(old);
    } catch (error) {
      this.#leave();
      this.#lost = error;
    }
  }

  #leave(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #begin(): void {
    privateFolder(this.#folder);
    // Counted first, so that a name whose file cannot be created is not tried again.
    this.#files += 1;
    const name = `${this.#run}.${String(this.#files).padStart(4, "0")}.jsonl`;
    const file = this.#file = JournalFile.create(join(this.#folder, name));
    const about = { run: this.#run, file: this.#files, pid: Deno.pid, version: VERSION };
    const opened = { kind: "event", event: "journal opened", about } as const;
    try {
      file.append(this.#sealed(this.#lineOf(opened)));
      this.#written = { ...this.#chain };
      this.#made.push(file.path);
    } catch (error) {
      this.#chain = { ...this.#written };
      // Otherwise a full disk would get an empty file for each record.
      this.#leave();
      removeIfThere(file.path);
      throw error;
    }
  }

  #fail(cause: unknown): PmlError {
    const { message: reason } = Object(cause);
    const why = FULL.test(reason) ? `the disk is full: ${reason}` : reason;
    const message = `Cannot write the journal in ${quoted(this.#folder, 400)}: ${why}`;
    const error = new PmlError("AUDIT_UNAVAILABLE", message, {
      hint:
        "Free disk space or repair the folder; `journal: best_effort` in config.yaml lets calls " +
        "that only read run",
      cause,
    });
    this.#failures.failed(error);
    return error;
  }
}

/** Returns a record as JSON without its outer braces. */
function bodyOf(record: JournalRecord, redactor: Redactor): string {
  const plain = JSON.stringify(record);
  // JSON contains a text without escapes unchanged, so if the whole contains no secret and is
  // short, no part needs a change. Most records end here.
  const isClean = plain.length <= LONGEST_TEXT && !plain.includes("\\") &&
    (isOwn(record) || redactor.redact(plain) === plain);
  const text = isClean ? plain : withoutSecrets(record, redactor);
  return text.slice(1, -1).replace(/[\u007f-\uffff]/g, escaped);
}

/** Returns a record as JSON without secrets, and with long texts cut. */
function withoutSecrets(record: JournalRecord, redactor: Redactor): string {
  // Secrets are removed before the text is cut, because half a secret would not be recognized.
  const safe = redactor.clean(record);
  const text = JSON.stringify(safe, cut);
  return text.length <= LONGEST_RECORD ? text : JSON.stringify(shortened(safe), cut);
}

function cut(_key: string, value: unknown): unknown {
  return typeof value !== "string" || value.length <= LONGEST_TEXT
    ? value
    : `${value.slice(0, LONGEST_TEXT)}… (${value.length} characters)`;
}

/** Returns whether all texts of a record are PML's own. */
function isOwn(record: JournalRecord): boolean {
  return record.kind === "end" && record.task === undefined;
}

// Removes the parts with outside content. The caller, the tool and the outcome stay.
function shortened(record: JournalRecord): JournalRecord {
  if (record.kind === "start") return { ...record, arguments: null, argumentsOmitted: true };
  if (record.kind === "event") return { ...record, about: { omitted: true } };
  return record;
}

// Escapes a character to ASCII, so that terminals and programs neither treat it as a line end nor
// reorder it.
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
