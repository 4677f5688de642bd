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
/** How many unused places, beyond four times those in use, may be kept. */
const SPARE = 100_000;

/** The range of one tool's words in the list of all words. The words of its name come first. */
export interface ToolDocument {
  readonly from: number;
  readonly to: number;
  /** The end of the words of the name. */
  readonly named: number;
  /** The number of words of each field, with repetitions. */
  readonly lengths: readonly number[];
}

/** Assigns numbers to words, and caches the tools that were read. */
export class Documents {
  // A few long arrays, because two short arrays for each tool would take most of the reading time.
  #terms = new Uint32Array(1_024);
  #counts = new Uint8ClampedArray(1_024 * FIELDS);
  #end = 0;
  #ids = new Map<string, number>();
  #read = new WeakMap<CatalogEntry, ToolDocument>();

  /** Reads tools. Tools that were read before come from the cache. */
  of(entries: readonly CatalogEntry[]): readonly ToolDocument[] {
    const idsByRun = new Map<string, readonly number[]>();
    // The same words occur again and again, so each is split and stemmed once.
    const idsOf = (run: string) => {
      let ids = idsByRun.get(run);
      if (ids === undefined) {
        idsByRun.set(
          run,
          ids = termsOfRun(run).map((term) => this.#idFor(term)),
        );
      }
      return ids;
    };
    return entries.map((entry) => {
      let document = this.#read.get(entry);
      if (document === undefined) this.#read.set(entry, document = this.#document(entry, idsOf));
      return document;
    });
  }

  /** The number of different words. */
  get size(): number {
    return this.#ids.size;
  }

  /** Returns the number of the word at a place. */
  term(at: number): number {
    return this.#terms[at] ?? 0;
  }

  /** Returns how often the word at a place occurs in a field, at most 255. */
  count(at: number, field: number): number {
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

  /** Returns the place of a word in a tool; -1 if the tool does not have it. */
  find({ from, to }: Pick<ToolDocument, "from" | "to">, id: number): number {
    const at = this.#terms.subarray(from, to).indexOf(id);
    return at < 0 ? at : from + at;
  }

  /** Clears the cache if most places belong to tools that no longer exist. */
  forgetUnused(used: number): void {
    if (this.#end <= 4 * used + SPARE) return;
    this.#end = 0;
    this.#ids = new Map();
    this.#read = new WeakMap();
  }

  #document(entry: CatalogEntry, idsOf: (run: string) => readonly number[]): ToolDocument {
    const from = this.#end;
    const places = new Map<number, number>();
    let named = from;
    const lengths = fieldsOf(entry).map((text, field) => {
      let length = 0;
      for (const run of runsOf(text)) {
        for (const id of idsOf(run)) {
          let at = places.get(id);
          if (at === undefined) places.set(id, at = this.#add(id));
          const place = at * FIELDS + field;
          this.#counts[place] = (this.#counts[place] ?? 0) + 1;
          length += 1;
        }
      }
      if (field === 0) named = this.#end;
      return length;
    });
    return { from, to: this.#end, named, lengths };
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

  #idFor(term: string): number {
    const id = this.#ids.get(term);
    if (id !== undefined) return id;
    this.#ids.set(term, this.#ids.size);
    return this.#ids.size - 1;
  }
}
