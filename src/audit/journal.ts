/**
 * The journal: what was called, by whom, under which rule and with what outcome, as JSON lines that
 * are chained by hash.
 *
 * @module
 */

import { join } from "node:path";
import { setImmediate } from "node:timers";
import { PmlError } from "../core/errors.ts";
import { sha256 } from "../core/hash.ts";
import { type Json, type JsonObject, quoted } from "../core/json.ts";
import { privateFolder } from "../io/private_files.ts";
import type { Redactor } from "./redact.ts";
import { JournalFile, prune, removeIfThere } from "./_journal_file.ts";

/** What `prev` is in the first record of a process. */
const NO_HASH = "0".repeat(64);
/** How many records wait at most for the end of the event-loop turn. */
const MOST_WAITING = 256;
const LONGEST_TEXT = 500;
const LONGEST_RECORD = 16_384;
/** What the system says where nothing more fits: a file, disk or share that has its most bytes. */
const FULL = /\(os error (27|28|112|122)\)/;

/** Written before a call is dispatched. */
export interface StartRecord {
  readonly kind: "start";
  readonly callId: string;
  readonly actor: string;
  readonly via: string;
  readonly tool: string;
  /** The client's request that it serves: its id as JSON. */
  readonly request?: string;
  /** What the rules said, and the pattern and file that said it. */
  readonly verdict?: string;
  readonly rule?: string;
  readonly source?: string;
  /** What the person answered, where the call carries an answer. */
  readonly answer?: string;
  /** Only the shape: even a hash of a short argument can be guessed. */
  readonly arguments: Json;
}

/** Written when a call is over, however it ended. */
export interface EndRecord {
  readonly kind: "end";
  readonly callId: string;
  readonly outcome: "result" | "tool error" | "ask" | "failed";
  /** How the task stood that it told of. */
  readonly task?: string;
  readonly code?: string;
  readonly ms: number;
  readonly size?: number;
  /** Where it could not be checked whether a result fits the schema of its tool. */
  readonly unchecked?: true;
}

/** Written for approvals, trust, changes of configuration and typed errors outside a call. */
export interface EventRecord {
  readonly kind: "event";
  readonly event: string;
  readonly actor?: string;
  readonly about?: JsonObject;
}

/** A line of the journal. */
export type JournalRecord = StartRecord | EndRecord | EventRecord;

/** How a journal is opened. */
export interface JournalOptions {
  readonly redactor: Redactor;
  /** Told once for each record that could not be written. */
  readonly onFailure: (error: PmlError) => void;
  /** Bytes after which the next file begins. */
  readonly fileBytes: number;
  /** Files kept of one process. */
  readonly filesKept: number;
}

interface Waiting {
  readonly body: string;
  readonly done: (error?: PmlError) => void;
}

/**
 * Writes records in order, those of one event-loop turn in one write. The write itself is
 * synchronous: it only copies to the kernel's memory (1 µs a record, where a round trip through
 * the thread pool takes 33), and so nothing piles up in ours.
 */
export class Journal implements Disposable {
  readonly #folder: string;
  readonly #options: JournalOptions;
  readonly #run: string;
  #file: JournalFile | undefined;
  #files = 0;
  /** Those that are there. */
  readonly #made: string[] = [];
  #seq = 0;
  #prev = NO_HASH;
  #waiting: Waiting[] = [];
  #closed = false;

  private constructor(folder: string, options: JournalOptions) {
    this.#folder = folder;
    this.#options = options;
    const started = new Date().toISOString().replaceAll(":", "-");
    // The random part keeps two journals of one process apart, and cannot be planted beforehand.
    this.#run = `${started}-${Deno.pid}-${crypto.randomUUID().slice(0, 8)}`;
  }

  /** Opens the journal of this process in `HOME/journal`, or says why it cannot be kept. */
  static open(home: string, options: JournalOptions): Journal {
    const journal = new Journal(join(home, "journal"), options);
    try {
      journal.#begin();
    } catch (error) {
      throw journal.#unavailable(error);
    }
    return journal;
  }

  /** Writes a record; resolves when the kernel has it, rejects with AUDIT_UNAVAILABLE. */
  write(record: JournalRecord): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#enqueue(record, (error) => error ? reject(error) : resolve());
    });
  }

  /** Writes a record that nobody waits for; a failure is told to `onFailure`. */
  note(record: JournalRecord): void {
    this.#enqueue(record, noDone);
  }

  /** Writes what waits, marks the journal as whole, and closes it. */
  [Symbol.dispose](): void {
    if (this.#closed) return;
    this.note({ kind: "event", event: "journal closed" });
    this.#flush();
    this.#closed = true;
    this.#leave();
    try {
      // Here, and not at the start, which a person waits for.
      const { fileBytes, filesKept } = this.#options;
      prune(this.#folder, { keep: this.#run, bytes: fileBytes * filesKept });
    } catch (error) {
      this.#fail(noDone, error);
    }
  }

  #enqueue(record: JournalRecord, done: Waiting["done"]): void {
    if (this.#closed) return this.#fail(done, new Error("the journal is closed"));
    const body = bodyOf(record, this.#options.redactor);
    if (this.#waiting.push({ body, done }) === 1) setImmediate(() => this.#flush());
    if (this.#waiting.length >= MOST_WAITING) this.#flush();
  }

  #flush(): void {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    try {
      this.#append(this.#current(), batch.map(({ body }) => body));
    } catch (error) {
      for (const { done } of batch) this.#fail(done, error);
      return;
    }
    for (const { done } of batch) done();
  }

  #append(file: JournalFile, bodies: readonly string[]): void {
    let seq = this.#seq;
    let prev = this.#prev;
    const at = new Date().toISOString();
    const lines = bodies.map((body) => {
      const line = `{"seq":${seq},"at":"${at}","prev":"${prev}",${body}`;
      // Over everything that stands before it.
      prev = sha256(line);
      seq += 1;
      return `${line},"hash":"${prev}"}\n`;
    });
    file.append(lines.join(""));
    // Only now: a failed write takes its lines back, and the chain goes on before them.
    this.#seq = seq;
    this.#prev = prev;
  }

  #current(): JournalFile {
    try {
      this.#file?.checkPlace();
    } catch (error) {
      // The records that meet this fail; those after them begin a new file.
      this.#leave();
      throw error;
    }
    const { fileBytes, filesKept } = this.#options;
    if (this.#file && this.#file.size < fileBytes) return this.#file;
    this.#leave();
    const file = this.#begin();
    for (const old of this.#made.splice(0, this.#made.length - filesKept)) removeIfThere(old);
    return file;
  }

  #leave(): void {
    this.#file?.close();
    this.#file = undefined;
  }

  #begin(): JournalFile {
    privateFolder(this.#folder);
    // Counted first: a name whose file could not be begun is not tried again.
    this.#files += 1;
    const file = this.#file = JournalFile.create(this.#pathOf(this.#files));
    const about = { run: this.#run, file: this.#files, pid: Deno.pid };
    const opened = { kind: "event", event: "journal opened", about } as const;
    try {
      this.#append(file, [bodyOf(opened, this.#options.redactor)]);
      this.#made.push(file.path);
      return file;
    } catch (error) {
      // An empty one for each record that finds the disk full would be no help.
      this.#leave();
      removeIfThere(file.path);
      throw error;
    }
  }

  #pathOf(file: number): string {
    return join(this.#folder, `${this.#run}.${String(file).padStart(4, "0")}.jsonl`);
  }

  #fail(done: Waiting["done"], cause: unknown): void {
    const error = this.#unavailable(cause);
    this.#options.onFailure(error);
    done(error);
  }

  #unavailable(cause: unknown): PmlError {
    const said = cause instanceof Error ? cause.message : String(cause);
    const why = FULL.test(said) ? `the disk is full: ${said}` : said;
    const message = `Cannot write the journal in ${quoted(this.#folder, 400)}: ${why}`;
    return new PmlError("AUDIT_UNAVAILABLE", message, {
      hint: "Free the disk or mend that folder, then call again; `journal: best_effort` in " +
        "config.yaml lets what only reads go on",
      cause,
    });
  }
}

function noDone(): void {
  // The failure was told to `onFailure`.
}

/** Writes a record as JSON without its opening and closing brace. */
function bodyOf(record: JournalRecord, redactor: Redactor): string {
  return written().slice(1, -1).replace(/[\u007f-\uffff]/g, escaped);

  function written(): string {
    const plain = JSON.stringify(record);
    // Each text of a record without escapes stands in it as it is, between quotes: where nothing
    // of the whole is secret or long, nothing of its parts is. Most records end here.
    const isClean = plain.length <= LONGEST_TEXT && !plain.includes("\\") &&
      redactor.redact(plain) === plain;
    if (isClean) return plain;
    // Secrets go before the text is cut: half of one would no longer be known.
    const safe = redactor.clean(record);
    const text = JSON.stringify(safe, cut);
    return text.length <= LONGEST_RECORD ? text : JSON.stringify(shortened(safe), cut);
  }

  function cut(_key: string, value: unknown): unknown {
    return typeof value !== "string" || value.length <= LONGEST_TEXT
      ? value
      : `${value.slice(0, LONGEST_TEXT)}… (${value.length} characters)`;
  }
}

// The parts that others fill go; who, what and how it ended stay.
function shortened(record: JournalRecord): JournalRecord {
  if (record.kind === "start") return { ...record, arguments: "too large to tell" };
  if (record.kind === "event") return { ...record, about: { left_out: "too large to tell" } };
  return record;
}

// Plain ASCII on disk: no terminal and no reader can take a character for a line's end or reorder it.
function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
