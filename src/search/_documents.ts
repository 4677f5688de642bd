/**
 * Tools in the form that search needs: words as numbers, counted for each field. Each tool is read
 * once.
 *
 * @module
 */

import { FIELD_WEIGHTS, fieldsOf } from "./_fields.ts";
import { runsOf, termsOfRun } from "./terms.ts";
import type { CatalogEntry } from "./catalog.ts";

/** The number of fields of a tool. */
const FIELDS = FIELD_WEIGHTS.length;
/** The number of unused positions that may stay, in addition to four times the used positions. */
const SPARE_POSITIONS = 100_000;

/** The range of one tool's different words in `Documents`. The words of its name come first. */
export interface ToolDocument {
  readonly from: number;
  readonly to: number;
  /** The end of the words of the name. */
  readonly nameEnd: number;
  /** The number of words of each field, with repetitions. */
  readonly lengths: readonly number[];
}

/** Assigns numbers to words, and caches the tools that were read. */
export class Documents {
  // These arrays contain the words of all tools, because creating two arrays for each tool would
  // take longer than reading it.
  #terms = new Uint32Array(1_024);
  #counts = new Uint8ClampedArray(1_024 * FIELDS);
  #end = 0;
  #ids = new Map<string, number>();
  #documents = new WeakMap<CatalogEntry, ToolDocument>();

  /** Reads tools. Tools that were read before come from the cache. */
  readAll(entries: readonly CatalogEntry[]): readonly ToolDocument[] {
    const idsByRun = new Map<string, readonly number[]>();
    // Many tools contain the same words, so each word is split and stemmed once.
    const idsOf = (run: string) => {
      let ids = idsByRun.get(run);
      if (ids === undefined) {
        idsByRun.set(
          run,
          ids = termsOfRun(run).map((term) => this.#assignId(term)),
        );
      }
      return ids;
    };
    return entries.map((entry) => {
      let document = this.#documents.get(entry);
      if (document === undefined) {
        this.#documents.set(entry, document = this.#readTool(entry, idsOf));
      }
      return document;
    });
  }

  /** The number of different words. */
  get size(): number {
    return this.#ids.size;
  }

  /** Returns the number of the word at a position. */
  termAt(at: number): number {
    return this.#terms[at] ?? 0;
  }

  /** Returns how often the word at a position occurs in a field, at most 255. */
  countAt(at: number, field: number): number {
    return this.#counts[at * FIELDS + field] ?? 0;
  }

  /** Returns the number of a word; undefined if no tool has it. */
  idOf(term: string): number | undefined {
    return this.#ids.get(term);
  }

  /** Returns all words with their numbers, also words of tools that no longer exist. */
  words(): readonly (readonly [word: string, id: number])[] {
    return [...this.#ids];
  }

  /** Returns the position of a word in a tool; -1 if the tool does not have the word. */
  find({ from, to }: Pick<ToolDocument, "from" | "to">, id: number): number {
    const at = this.#terms.subarray(from, to).indexOf(id);
    return at < 0 ? at : from + at;
  }

  /** Clears the cache if most positions belong to tools that no longer exist. */
  forgetUnused(used: number): void {
    if (this.#end <= 4 * used + SPARE_POSITIONS) return;
    this.#end = 0;
    this.#ids = new Map();
    this.#documents = new WeakMap();
  }

  #readTool(entry: CatalogEntry, idsOf: (run: string) => readonly number[]): ToolDocument {
    const from = this.#end;
    const positions = new Map<number, number>();
    let nameEnd = from;
    const lengths = fieldsOf(entry).map((text, field) => {
      let length = 0;
      for (const run of runsOf(text)) {
        for (const id of idsOf(run)) {
          let at = positions.get(id);
          if (at === undefined) positions.set(id, at = this.#add(id));
          const cell = at * FIELDS + field;
          this.#counts[cell] = (this.#counts[cell] ?? 0) + 1;
          length += 1;
        }
      }
      if (field === 0) nameEnd = this.#end;
      return length;
    });
    return { from, to: this.#end, nameEnd, lengths };
  }

  #add(id: number): number {
    const at = this.#end++;
    if (at === this.#terms.length) {
      const [terms, counts] = [this.#terms, this.#counts];
      this.#terms = new Uint32Array(2 * terms.length);
      this.#counts = new Uint8ClampedArray(2 * counts.length);
      this.#terms.set(terms);
      this.#counts.set(counts);
    }
    this.#terms[at] = id;
    this.#counts.fill(0, at * FIELDS, (at + 1) * FIELDS);
    return at;
  }

  #assignId(term: string): number {
    const id = this.#ids.get(term);
    if (id !== undefined) return id;
    this.#ids.set(term, this.#ids.size);
    return this.#ids.size - 1;
  }
}
