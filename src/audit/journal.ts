/**
 * The journal: records of which tool was called, by whom, under which rule and with what outcome.
 * The records are lines of JSON. The last record of each flush contains the hash of this flush and
 * the hash of the previous flush.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import { ByteBuffer } from "../io/lines.ts";
import { privateFolder } from "../io/private_files.ts";
import type { Redactor } from "./redact.ts";
import { JournalFile, pruneJournal, removeIfThere } from "./_journal_file.ts";

/** The version of the format. In version 1 each record had its own hash. */
const VERSION = 2;
/** The `prev` of the first flush of a process. */
const NO_HASH = "0".repeat(64);
/** How long the end of a call may wait for other records, in milliseconds. */
const END_MS = 5;
/** The number of characters of waiting records at which they are written at once. */
const MOST_WAITING = 65_536;
const LONGEST_TEXT = 500;
const LONGEST_RECORD = 16_384;
/** The number of bytes of a flush after the bytes that its hash covers. */
const HASH_BYTES = ',"hash":""}\n'.length + NO_HASH.length;
/** The errors of a file, disk, quota or share that is full. */
const FULL = /\(os error (27|28|112|122)\)/;

/** The record that is written before a call runs. */
export interface StartRecord {
  readonly kind: "start";
  readonly callId: string;
  readonly actor: string;
  readonly via: string;
  readonly tool: string;
  /** The id of the run that made the call. All calls of one run have the same id. */
  readonly run?: string;
  /** The id of the client's request that the call belongs to, as JSON. */
  readonly request?: string;
  /** The decision of the rules, with the pattern and the file that decided. */
  readonly verdict?: string;
  readonly rule?: string;
  readonly source?: string;
  /** The user's answer, if the call carries one. */
  readonly answer?: string;
  /** Only the shape of the arguments: a short argument could be guessed even from a hash. */
  readonly arguments: Json;
  /** Set if the shape is too large for a record. */
  readonly argumentsOmitted?: true;
  /** The number of bytes of the arguments as JSON, if their shape was omitted. */
  readonly argumentsBytes?: number;
}

/** The record that is written after a call with any outcome. */
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
  onFailedWrite(error: PmlError): void;
}

/** The configuration of a journal. */
export interface JournalConfig {
  /** The PML home. */
  readonly home: string;
  /** The workspace of the process. */
  readonly workspace?: string;
  readonly limits: {
    /** The size in bytes after which the next file begins. */
    readonly journalBytes: number;
    /** The maximum number of files of one process. */
    readonly journalFiles: number;
  };
}

/** A place in the chain of records. */
interface Chain {
  seq: number;
  flush: number;
  prev: string;
}

/** Called when a record was written, or with the error if it was not. */
type Done = (error?: PmlError) => void;

/**
 * Writes records in order, and all records before the next microtask in one write. The write is
 * synchronous, because it only copies to the kernel's memory: 1 µs for each record, instead of 33
 * µs with the thread pool.
 */
export class Journal implements Disposable {
  readonly #folder: string;
  readonly #config: JournalConfig;
  readonly #redactor: Redactor;
  readonly #failures: JournalFailures;
  readonly #run: string;
  #file: JournalFile | undefined;
  #fileCount = 0;
  /** The paths of the files that were created and not removed. */
  readonly #paths: string[] = [];
  /** The numbers of the next record and of the next flush, and the hash of the flush before it. */
  #chain: Chain = { seq: 0, flush: 1, prev: NO_HASH };
  /** The end of the chain in the files. A failed write goes back to it. */
  #written: Readonly<Chain> = { ...this.#chain };
  /** The time of the last record, as a number and as the text in records. */
  #now = 0;
  #at = "";
  /** The waiting records, the last one without its closing brace, and the callbacks of callers. */
  #lines = "";
  #waiting: Done[] = [];
  /** The bytes of a flush, in memory that is reused. */
  readonly #bytes = new ByteBuffer();
  /** The error for the waiting records if no file could be opened. */
  #openError: unknown;
  /** Whether the next microtask writes the waiting records. */
  #isScheduled = false;
  /** The timer that writes the ends of calls if no other record follows. */
  #endTimer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  private constructor(config: JournalConfig, redactor: Redactor, failures: JournalFailures) {
    this.#folder = join(config.home, "journal");
    this.#config = config;
    this.#redactor = redactor;
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
  static open(config: JournalConfig, redactor: Redactor, failures: JournalFailures): Journal {
    const journal = new Journal(config, redactor, failures);
    try {
      journal.#openFile();
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
   * Writes a record together with all records that come before the next microtask. Calls `done`
   * when the kernel has the record, or with AUDIT_UNAVAILABLE, which `failures` receives, too.
   */
  append(record: JournalRecord, done?: Done): void {
    if (!this.#isScheduled) queueMicrotask(() => this.#flush());
    this.#isScheduled = true;
    this.#queue(record, done);
  }

  /** Writes the end of a call with the next records, or soon. */
  end(record: EndRecord): void {
    this.#endTimer ??= setTimeout(() => {
      this.#endTimer = undefined;
      this.#flush();
    }, END_MS);
    this.#queue(record);
  }

  /**
   * Writes all waiting records and a last record that marks the journal as complete, and closes it.
   */
  [Symbol.dispose](): void {
    if (this.#closed) return;
    clearTimeout(this.#endTimer);
    this.append({ kind: "event", event: "journal closed" });
    this.#flush();
    this.#closed = true;
    this.#closeFile();
    try {
      // Old files are removed here and not at the start, because the user waits for the start.
      const { journalBytes: fileBytes, journalFiles: filesKept } = this.#config.limits;
      pruneJournal(this.#folder, { keep: this.#run, bytes: fileBytes * filesKept });
    } catch (error) {
      this.#fail(error);
    }
  }

  #queue(record: JournalRecord, done?: Done): void {
    if (this.#closed) {
      const lost = this.#fail(new Error("the journal is closed"));
      return done?.(lost);
    }
    if (this.#lines === "") this.#prepareFile();
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
    const body = bodyOf(record, this.#redactor);
    return `{"seq":${this.#chain.seq++},"at":"${this.#at}",${body}`;
  }

  /** Appends a flush with its hash, which covers everything before it. */
  #append(file: JournalFile, lines: string): void {
    const { flush, prev } = this.#chain;
    const covered = this.#toAscii(`${lines},"flush":${flush},"prev":"${prev}"`);
    const hash = sha256(covered);
    const end = this.#bytes.addText(`,"hash":"${hash}"}\n`);
    this.#chain.flush++;
    this.#chain.prev = hash;
    file.append(new Uint8Array(covered.buffer, covered.byteOffset, covered.length + end.length));
    this.#written = { ...this.#chain };
  }

  /** Returns the bytes of JSON, with escapes for characters other than visible ASCII. */
  #toAscii(json: string): Uint8Array {
    this.#bytes.clear();
    const bytes = this.#bytes.addText(json, HASH_BYTES);
    // Characters beyond ASCII have more than one byte.
    if (bytes.length === json.length && !json.includes("\u007f")) return bytes;
    this.#bytes.clear();
    return this.#bytes.addText(json.replace(/[\u007f-\uffff]/g, toEscape), HASH_BYTES);
  }

  #flush(): void {
    const lines = this.#lines;
    this.#isScheduled = false;
    if (lines === "") return;
    const waiting = this.#waiting;
    this.#lines = "";
    this.#waiting = [];
    let lost: PmlError | undefined;
    try {
      if (this.#file === undefined) throw this.#openError;
      this.#append(this.#file, lines);
    } catch (error) {
      this.#chain = { ...this.#written };
      lost = this.#fail(error);
    }
    for (const done of waiting) done(lost);
  }

  /**
   * Opens a file for the next records if needed. On failure these records are lost, and a later
   * record tries again.
   */
  #prepareFile(): void {
    const { journalBytes: fileBytes, journalFiles: filesKept } = this.#config.limits;
    try {
      this.#file?.recheckPlace();
      if (this.#file && this.#file.size < fileBytes) return;
      this.#closeFile();
      this.#openFile();
      for (const old of this.#paths.splice(0, this.#paths.length - filesKept)) removeIfThere(old);
    } catch (error) {
      this.#closeFile();
      this.#openError = error;
    }
  }

  #closeFile(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #openFile(): void {
    privateFolder(this.#folder);
    // The number is used up first, so that a name whose file cannot be created is not tried again.
    this.#fileCount += 1;
    const name = `${this.#run}.${String(this.#fileCount).padStart(4, "0")}.jsonl`;
    const file = this.#file = JournalFile.create(join(this.#folder, name));
    const { workspace } = this.#config;
    const about = {
      ...{ run: this.#run, file: this.#fileCount, pid: Deno.pid, version: VERSION },
      ...workspace !== undefined && { workspace },
    };
    const opened = { kind: "event", event: "journal opened", about } as const;
    try {
      this.#append(file, this.#lineOf(opened));
      this.#paths.push(file.path);
    } catch (error) {
      this.#chain = { ...this.#written };
      // Otherwise PML would leave an empty file on a full disk for each record.
      this.#closeFile();
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
    this.#failures.onFailedWrite(error);
    return error;
  }
}

/** Returns a record as JSON without its outer braces. */
function bodyOf(record: JournalRecord, redactor: Redactor): string {
  const plain = JSON.stringify(record);
  // JSON contains a text without escapes unchanged, so if the whole contains no secret and is
  // short, no part needs a change. This is the case for most records.
  const isClean = plain.length <= LONGEST_TEXT && !plain.includes("\\") &&
    (hasOnlyOwnTexts(record) || redactor.redact(plain) === plain);
  const text = isClean ? plain : withoutSecrets(record, redactor);
  return text.slice(1, -1);
}

/** Returns a record as JSON without secrets, and with long texts truncated. */
function withoutSecrets(record: JournalRecord, redactor: Redactor): string {
  // Secrets are removed before texts are truncated: half a secret would not be recognized.
  const safe = redactor.clean(record);
  const text = JSON.stringify(safe, truncateText);
  return text.length <= LONGEST_RECORD ? text : JSON.stringify(withoutContent(safe), truncateText);
}

function truncateText(_key: string, value: unknown): unknown {
  return typeof value !== "string" || value.length <= LONGEST_TEXT
    ? value
    : `${value.slice(0, LONGEST_TEXT)}… (${value.length} characters)`;
}

/** Returns whether PML wrote all texts of a record, so that they contain no secret. */
function hasOnlyOwnTexts(record: JournalRecord): boolean {
  return record.kind === "end" && record.task === undefined;
}

// Removes the parts with outside content. The caller, the tool and the outcome stay.
function withoutContent(record: JournalRecord): JournalRecord {
  if (record.kind === "start") return { ...record, arguments: null, argumentsOmitted: true };
  if (record.kind === "event") return { ...record, about: { omitted: true } };
  return record;
}

// Escapes a character to ASCII, so that terminals and programs neither treat it as a line end nor
// reorder it.
function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
