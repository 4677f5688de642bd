/**
 * The vectors of tools: computed once for each text, stored in the PML home, and compared with
 * those of queries.
 *
 * @module
 */

import { dirname } from "node:path";
import { sha256 } from "../core/hash.ts";
import { memoized } from "../core/memo.ts";
import { soon } from "../io/waiting.ts";
import {
  readVectors,
  type StoredVector,
  storedVector,
  UNKNOWN,
  writeVectors,
} from "./_vector_file.ts";
import type { CatalogEntry } from "./catalog.ts";
import { meaningText } from "./meaning_text.ts";

/** Turns texts into vectors. `Embedder` implements it. */
export interface TextEmbedder {
  /** Returns a vector of length one for each text; undefined for a text that the model cannot use. */
  embed(
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (Float32Array | undefined)[]>;
}

/** The file of the vectors of one model. */
export interface VectorFile {
  /** The file that stores them. */
  readonly path: string;
  /** The hash of the model, 64 hexadecimal digits. Vectors of other models are ignored. */
  readonly model: string;
}

/** The owner of the vectors, which follows the work on them. `Meaning` implements it. */
export interface VectorsOwner {
  /** Aborts the work that is under way. */
  readonly closing: AbortSignal;
  /** How long a search waits for the vector of its query, in milliseconds; 5,000 by default. */
  readonly queryMs?: number;
  /** Is called each time when the model computed vectors. */
  embedded(): void;
  /** Is called from time to time and at the end, with the numbers of tools with vectors and of all. */
  indexed(done: number, total: number): void;
  /** Is called with an error. The work is tried again at a later search. */
  failed(error: unknown): void;
}

type IndexProgress = (done: number, total: number) => void;

/** A text without a vector. */
interface TextToEmbed {
  readonly key: string;
  readonly text: string;
}

/** How many texts the model gets at once. Queries wait for them. */
const BATCH = 8;
const TOLD_EVERY = 200;
const SAVED_EVERY = 512;
const MOST_QUERIES = 200;
/** Models read even less of a text. */
const LONGEST_QUERY = 1_000;
const QUERY_MS = 5_000;
const HARMLESS = "a";
/** The vector of a text without meaning. */
const NONE = new Float32Array();
/** How many vectors are kept of tools that are gone, because they may come back. */
const MOST_OTHERS = 10_000;

/** The vectors of a catalog. */
export class Vectors {
  readonly #file: VectorFile;
  readonly #embedder: TextEmbedder;
  readonly #owner: VectorsOwner;
  readonly #keyOf = memoized((entry: CatalogEntry) => keyOf(meaningText(entry)));
  readonly #queries = new Map<string, Float32Array>();
  #vectors: Map<string, StoredVector> | undefined;
  #entries: readonly CatalogEntry[] = [];
  /** The vectors of the entries; undefined while some are missing. */
  #rows: readonly StoredVector[] | undefined;
  #work: Promise<void> | undefined;
  #late: Promise<void> | undefined;

  /** Takes the file. Reads nothing before the first search. */
  constructor(file: VectorFile, embedder: TextEmbedder, owner: VectorsOwner) {
    this.#file = file;
    this.#embedder = embedder;
    this.#owner = owner;
  }

  /** Returns the cosines of the entries for each query, or starts computing missing vectors. */
  async similarities(
    queries: readonly string[],
    entries: readonly CatalogEntry[],
  ): Promise<readonly Float32Array[] | undefined> {
    const rows = this.#follow(entries);
    if (rows === undefined) {
      this.#begin();
      return undefined;
    }
    try {
      const vectors = await this.#vectorsOf(queries);
      return vectors?.map((vector) => cosines(vector, rows));
    } catch (error) {
      this.#owner.failed(error);
      return undefined;
    }
  }

  /** Returns how many of these tools have vectors. */
  count(entries: readonly CatalogEntry[]): number {
    const vectors = this.#load();
    return entries.filter((entry) => vectors.has(this.#keyOf(entry))).length;
  }

  /** Computes the vectors of these tools and reports progress. Throws if it fails. */
  async make(entries: readonly CatalogEntry[], tell: IndexProgress): Promise<void> {
    this.#follow(entries);
    await this.#index(tell);
  }

  /** Waits for the work that is under way. `closing` aborts it. */
  async settled(): Promise<void> {
    await Promise.all([this.#work, this.#late]);
  }

  #load(): Map<string, StoredVector> {
    this.#vectors ??= readVectors(this.#file.path, this.#file.model);
    return this.#vectors;
  }

  #follow(entries: readonly CatalogEntry[]): readonly StoredVector[] | undefined {
    if (entries === this.#entries && this.#rows !== undefined) return this.#rows;
    this.#entries = entries;
    const vectors = this.#load();
    const rows = entries.flatMap((entry) => vectors.get(this.#keyOf(entry)) ?? []);
    this.#rows = rows.length === entries.length ? rows : undefined;
    return this.#rows;
  }

  #begin(): void {
    const owner = this.#owner;
    this.#work ??= this.#index((done, total) => owner.indexed(done, total))
      .catch((error) => owner.failed(error)).finally(() => this.#work = undefined);
  }

  async #index(tell: IndexProgress): Promise<void> {
    let [made, unsaved] = [0, 0];
    let queue: TextToEmbed[] = [];
    const next = () => {
      // Entries that are added meanwhile follow when all earlier ones are done.
      if (queue.length === 0) queue = this.#missing();
      return queue.splice(0, BATCH);
    };
    try {
      for (let batch = next(); batch.length > 0; batch = next()) {
        made += await this.#make(batch);
        unsaved += batch.length;
        const isTold = queue.length === 0 || made % TOLD_EVERY < BATCH;
        if (isTold) tell(this.count(this.#entries), this.#entries.length);
        if (unsaved >= SAVED_EVERY) unsaved = this.#save();
      }
    } finally {
      if (unsaved > 0) this.#save();
    }
  }

  async #make(batch: readonly TextToEmbed[]): Promise<number> {
    const texts = batch.map(({ text }) => text);
    const vectors = await this.#embed(texts);
    const storedVectors = this.#load();
    batch.forEach(({ key }, at) => {
      const vector = vectors[at];
      storedVectors.set(key, vector === undefined ? UNKNOWN : storedVector(vector));
    });
    return batch.length;
  }

  /** Computes vectors. If the model fails on one text, the others still get theirs. */
  async #embed(texts: readonly string[]): ReturnType<TextEmbedder["embed"]> {
    try {
      return await this.#computed(texts);
    } catch (error) {
      // A single text is tried once more only if the model works at all.
      if (texts.length === 1) await this.#mustWork(error);
    }
    const vectors = [];
    for (const text of texts) {
      const alone = this.#computed([text]);
      const [vector] = await alone.catch(async (error) => {
        await this.#mustWork(error);
        return [];
      });
      vectors.push(vector);
    }
    return vectors;
  }

  /** Throws the error if the model fails on any text. */
  async #mustWork(error: unknown): Promise<void> {
    if (this.#owner.closing.aborted) throw error;
    await this.#computed([HARMLESS]).catch(() => {
      throw error;
    });
  }

  async #computed(texts: readonly string[]): ReturnType<TextEmbedder["embed"]> {
    const vectors = await this.#embedder.embed(texts, this.#owner.closing);
    this.#owner.embedded();
    return vectors;
  }

  /**
   * Returns the texts without a vector, each once, the short ones first: a batch takes as long as
   * its longest text.
   */
  #missing(): TextToEmbed[] {
    const vectors = this.#load();
    const missing = new Map<string, string>();
    for (const entry of this.#entries) {
      const key = this.#keyOf(entry);
      if (!vectors.has(key)) missing.set(key, meaningText(entry));
    }
    return [...missing].map(([key, text]) => ({ key, text }))
      .sort((one, other) => one.text.length - other.text.length);
  }

  #save(): number {
    const { path, model } = this.#file;
    const vectors = this.#load();
    // Another PML process may have stored others meanwhile.
    for (const [key, vector] of readVectors(path, model)) {
      if (!vectors.has(key)) vectors.set(key, vector);
    }
    // The vectors that were not used for the longest time come first, and are removed first.
    for (const key of this.#entries.map(this.#keyOf)) moveLast(vectors, key);
    const used = new Set(this.#entries.map(this.#keyOf)).size;
    trim(vectors, MOST_OTHERS + used);
    Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // Texts on which the model failed are not stored, so the next process tries them again.
    writeVectors(path, model, vectors);
    return 0;
  }

  /** Returns the vectors of queries; undefined if the model takes too long. */
  async #vectorsOf(queries: readonly string[]): Promise<readonly Float32Array[] | undefined> {
    const texts = queries.map((query) => query.slice(0, LONGEST_QUERY));
    const vectors = new Map<string, Float32Array>();
    const missing = new Set<string>();
    for (const query of texts) {
      const vector = moveLast(this.#queries, query);
      if (vector !== undefined) vectors.set(query, vector);
      // A query of blanks has no meaning, and models return anything for it.
      else if (/\S/.test(query)) missing.add(query);
    }
    if (missing.size > 0) {
      // If the model hangs, later searches do not wait for it again.
      if (this.#late !== undefined) return undefined;
      const work = this.#ask([...missing]);
      if (!await soon(work, this.#owner.queryMs ?? QUERY_MS)) {
        const late = work.then(() => {}, (error) => this.#owner.failed(error));
        this.#late = late.finally(() => this.#late = undefined);
        return undefined;
      }
      // Taken from the result and not from the cache, where other queries may have replaced them.
      for (const [query, vector] of await work) vectors.set(query, vector);
    }
    return texts.map((query) => vectors.get(query) ?? NONE);
  }

  async #ask(queries: readonly string[]): Promise<ReadonlyMap<string, Float32Array>> {
    const vectors = await this.#embed(queries);
    const made = new Map(queries.map((query, at) => [query, vectors[at] ?? NONE]));
    for (const [query, vector] of made) this.#queries.set(query, vector);
    trim(this.#queries, MOST_QUERIES);
    return made;
  }
}

/** Returns the value of a key and moves it to the end. */
function moveLast<T>(entries: Map<string, T>, key: string): T | undefined {
  const value = entries.get(key);
  if (value === undefined) return undefined;
  entries.delete(key);
  entries.set(key, value);
  return value;
}

/** Removes the first entries beyond a number. */
function trim(entries: Map<string, unknown>, most: number): void {
  const over = Math.max(entries.size - most, 0);
  for (const key of [...entries.keys()].slice(0, over)) entries.delete(key);
}

function keyOf(text: string): string {
  return sha256(text).slice(0, 32);
}

function cosines(query: Float32Array, rows: readonly StoredVector[]): Float32Array {
  return Float32Array.from(rows, ({ codes, scale }) => {
    if (query.length === 0) return NaN;
    let sum = 0;
    for (let at = 0; at < codes.length; at++) sum += (codes[at] ?? 0) * (query[at] ?? 0);
    return sum * scale;
  });
}
