/**
 * Reads the files of the journal line by line, also while they grow.
 *
 * @module
 */

import { join } from "node:path";
import { openRegular } from "../io/regular_file.ts";
import { unlessGone } from "../io/private_files.ts";
import { isObject, type JsonObject } from "../core/json.ts";
import { journalFiles, type NamedFile } from "./_journal_file.ts";

const CHUNK_BYTES = 65_536;

/** A line of the journal, and its record; undefined if the line is not a record. */
export interface JournalLine {
  /** The file that contains it. */
  readonly path: string;
  readonly text: string;
  readonly record: JsonObject | undefined;
}

/** An open file of lines. */
export class FileLines implements Disposable {
  readonly #file: Deno.FsFile;
  // A byte order mark is kept, because it would be a change of the file.
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  readonly #bytes = new Uint8Array(CHUNK_BYTES);
  #rest = "";

  /** Takes an open file. */
  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  /** The text after the last line end. */
  get rest(): string {
    return this.#rest;
  }

  /** Reads the whole lines that were not read yet. */
  async *read(): AsyncGenerator<string> {
    for (;;) {
      const count = await this.#file.read(this.#bytes);
      if (count === null) return;
      const text = this.#decoder.decode(this.#bytes.subarray(0, count), { stream: true });
      const lines = (this.#rest + text).split("\n");
      this.#rest = lines.pop() ?? "";
      yield* lines;
    }
  }

  /** Closes the file. */
  [Symbol.dispose](): void {
    this.#file.close();
  }
}

/** Opens a file of the journal; undefined if it is gone. Throws if it is a link. */
export function openJournalFile(path: string): FileLines | undefined {
  try {
    return new FileLines(openRegular(path, { read: true }));
  } catch (error) {
    return unlessGone(error);
  }
}

/**
 * Returns the paths of all journal files in a PML home: one list for each process, oldest first.
 */
export function journalRuns(home: string): readonly (readonly string[])[] {
  const runs = Map.groupBy(journalFiles(join(home, "journal")), ({ run }) => run);
  return [...runs.values()].map((files) => files.map(({ path }) => path));
}

/** Reads the journals of all processes. Each later read returns only new lines. */
export class JournalReader implements Disposable {
  readonly #folder: string;
  /** The files that may still grow. An open file can be read to its end after it is removed. */
  readonly #open = new Map<string, FileLines>();
  /** The paths of the files that were read to their end and no longer grow. */
  readonly #done = new Set<string>();

  /** Takes the PML home; reads nothing yet. */
  constructor(home: string) {
    this.#folder = join(home, "journal");
  }

  /** Reads the lines that were not read yet. The lines of one process come in their order. */
  async *read(): AsyncGenerator<JournalLine> {
    const files = journalFiles(this.#folder);
    const paths = new Set(files.map(({ path }) => path));
    for (const [path, lines] of this.#open) {
      if (paths.has(path)) continue;
      yield* this.#linesOf(lines, path);
      this.#close(path);
    }
    for (const [index, file] of files.entries()) {
      if (this.#done.has(file.path)) continue;
      const lines = this.#openFile(file);
      if (lines === undefined) continue;
      yield* this.#linesOf(lines, file.path);
      // The next file of the process existed before this file was read, so this file no longer
      // grows.
      if (files[index + 1]?.run === file.run) this.#close(file.path);
    }
  }

  /** Closes all files. */
  [Symbol.dispose](): void {
    for (const path of [...this.#open.keys()]) this.#close(path);
  }

  #openFile({ path }: NamedFile): FileLines | undefined {
    const lines = this.#open.get(path) ?? openJournalFile(path);
    if (lines !== undefined) this.#open.set(path, lines);
    return lines;
  }

  #close(path: string): void {
    this.#open.get(path)?.[Symbol.dispose]();
    this.#open.delete(path);
    this.#done.add(path);
  }

  async *#linesOf(lines: FileLines, path: string): AsyncGenerator<JournalLine> {
    for await (const text of lines.read()) yield { path, text, record: recordOf(text) };
  }
}

/** Returns the record in a line; undefined if there is none. */
export function recordOf(line: string): JsonObject | undefined {
  try {
    const value = JSON.parse(line);
    return isObject(value) ? value as JsonObject : undefined; // parsed from JSON
  } catch {
    // Invalid JSON is an expected result here.
    return undefined;
  }
}
