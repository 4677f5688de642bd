/**
 * The vectors of tools. Each text is embedded once and stored in the PML home. Searches compare the
 * vectors with the vectors of queries.
 *
 * @module
 */

import { dirname } from "node:path";
import { sha256 } from "../core/hash.ts";
import { memoized } from "../core/memo.ts";
import { settlesWithin } from "../io/waiting.ts";
import {
  NO_VECTOR,
  readVectors,
  type StoredVector,
  toStoredVector,
  writeVectors,
} from "./_vector_file.ts";
import type { CatalogEntry } from "./catalog.ts";
import { meaningText } from "./meaning_text.ts";

/** Turns texts into vectors. `Embedder` implements it. */
export interface TextEmbedder {
  /**
   * Returns a vector of length one for each text; undefined for a text that the model cannot use.
   */
  embed(
    texts: readonly string[],
    signal: AbortSignal,
  ): Promise<readonly (Float32Array | undefined)[]>;
}

/** The file of the vectors of one model. */
export interface VectorFile {
  /** The path of the file. */
  readonly path: string;
  /** The hash of the model, 64 hexadecimal digits. Vectors of other models are ignored. */
  readonly model: string;
}

/** Receives the progress and the failures of the work on vectors. `Meaning` implements it. */
export interface VectorsOwner {
  /** Aborts the current work. */
  readonly closing: AbortSignal;
  /** How long a search waits for the vector of its query, in milliseconds. */
  readonly queryMs: number;
  /** Is called each time when the model has computed vectors. */
  onEmbedded(): void;
  /**
   * Is called from time to time and at the end, with the number of tools that have vectors and the
   * number of all tools.
   */
  onIndexed(done: number, total: number): void;
  /** Is called with an error. The work is tried again at a later search. */
  onFailed(error: unknown): void;
}

type IndexProgress = (done: number, total: number) => void;

/** A text without a vector. */
interface TextToEmbed {
  readonly key: string;
  readonly text: string;
}

/**
 * The number of texts in one request to the model. A query waits until the current request ends.
 */
const BATCH = 8;
/** The number of vectors after which the progress is reported. */
const REPORT_EVERY = 200;
/** The number of vectors after which the file is saved. */
const SAVE_EVERY = 512;
const MOST_QUERIES = 200;
/** Longer queries are cut, because models read even less of a text. */
const LONGEST_QUERY = 1_000;
/** A text that every working model can embed. */
const TEST_TEXT = "a";
/** The vector of a text without meaning. */
const EMPTY = new Float32Array();
/** The number of vectors of removed tools that are kept, because such tools may come back. */
const UNUSED_MAX = 10_000;

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
  #lateQuery: Promise<void> | undefined;

  /** Creates an instance. Reads nothing before the first search. */
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
    const rows = this.#useEntries(entries);
    if (rows === undefined) {
      this.#startIndexing();
      return undefined;
    }
    try {
      const vectors = await this.#queryVectors(queries);
      return vectors?.map((vector) => cosines(vector, rows));
    } catch (error) {
      this.#owner.onFailed(error);
      return undefined;
    }
  }

  /** Returns how many of these tools have vectors. */
  count(entries: readonly CatalogEntry[]): number {
    const vectors = this.#load();
    return entries.filter((entry) => vectors.has(this.#keyOf(entry))).length;
  }

  /** Computes the vectors of these tools and reports progress. Throws if it fails. */
  async compute(entries: readonly CatalogEntry[], report: IndexProgress): Promise<void> {
    this.#useEntries(entries);
    await this.#index(report);
  }

  /** Waits for the current work. `closing` aborts it. */
  async whenIdle(): Promise<void> {
    await Promise.all([this.#work, this.#lateQuery]);
  }

  #load(): Map<string, StoredVector> {
    this.#vectors ??= readVectors(this.#file.path, this.#file.model);
    return this.#vectors;
  }

  #useEntries(entries: readonly CatalogEntry[]): readonly StoredVector[] | undefined {
    if (entries === this.#entries && this.#rows !== undefined) return this.#rows;
    this.#entries = entries;
    const vectors = this.#load();
    const rows = entries.flatMap((entry) => vectors.get(this.#keyOf(entry)) ?? []);
    this.#rows = rows.length === entries.length ? rows : undefined;
    return this.#rows;
  }

  #startIndexing(): void {
    const owner = this.#owner;
    this.#work ??= this.#index((done, total) => owner.onIndexed(done, total))
      .catch((error) => owner.onFailed(error)).finally(() => this.#work = undefined);
  }

  async #index(report: IndexProgress): Promise<void> {
    let [doneCount, unsavedCount] = [0, 0];
    let queue: TextToEmbed[] = [];
    const next = () => {
      // Entries that were added meanwhile follow when all earlier entries are done.
      if (queue.length === 0) queue = this.#findMissing();
      return queue.splice(0, BATCH);
    };
    try {
      for (let batch = next(); batch.length > 0; batch = next()) {
        doneCount += await this.#embedBatch(batch);
        unsavedCount += batch.length;
        const isReportDue = queue.length === 0 || doneCount % REPORT_EVERY < BATCH;
        if (isReportDue) report(this.count(this.#entries), this.#entries.length);
        if (unsavedCount >= SAVE_EVERY) {
          this.#save();
          unsavedCount = 0;
        }
      }
    } finally {
      if (unsavedCount > 0) this.#save();
    }
  }

  async #embedBatch(batch: readonly TextToEmbed[]): Promise<number> {
    const texts = batch.map(({ text }) => text);
    const vectors = await this.#embed(texts);
    const storedVectors = this.#load();
    batch.forEach(({ key }, at) => {
      const vector = vectors[at];
      storedVectors.set(key, vector === undefined ? NO_VECTOR : toStoredVector(vector));
    });
    return batch.length;
  }

  /** Computes vectors. If the model fails on one text, the other texts still get vectors. */
  async #embed(texts: readonly string[]): ReturnType<TextEmbedder["embed"]> {
    try {
      return await this.#callModel(texts);
    } catch (error) {
      // Throws if the model fails on every text. Then the loop below would only repeat the failure.
      if (texts.length === 1) await this.#assertModelWorks(error);
    }
    const vectors = [];
    for (const text of texts) {
      const embedding = this.#callModel([text]);
      const [vector] = await embedding.catch(async (error) => {
        await this.#assertModelWorks(error);
        return [];
      });
      vectors.push(vector);
    }
    return vectors;
  }

  /** Throws the error if the model fails on any text. */
  async #assertModelWorks(error: unknown): Promise<void> {
    if (this.#owner.closing.aborted) throw error;
    await this.#callModel([TEST_TEXT]).catch(() => {
      throw error;
    });
  }

  async #callModel(texts: readonly string[]): ReturnType<TextEmbedder["embed"]> {
    const vectors = await this.#embedder.embed(texts, this.#owner.closing);
    this.#owner.onEmbedded();
    return vectors;
  }

  /**
   * Returns the texts without a vector, each once, the short ones first: a batch takes as long as
   * its longest text.
   */
  #findMissing(): TextToEmbed[] {
    const vectors = this.#load();
    const missing = new Map<string, string>();
    for (const entry of this.#entries) {
      const key = this.#keyOf(entry);
      if (!vectors.has(key)) missing.set(key, meaningText(entry));
    }
    return [...missing].map(([key, text]) => ({ key, text }))
      .sort((one, other) => one.text.length - other.text.length);
  }

  #save(): void {
    const { path, model } = this.#file;
    const vectors = this.#load();
    // Another PML process may have stored further vectors.
    for (const [key, vector] of readVectors(path, model)) {
      if (!vectors.has(key)) vectors.set(key, vector);
    }
    // Vectors of current tools move to the end, because `trim()` removes the first vectors.
    for (const key of this.#entries.map(this.#keyOf)) moveLast(vectors, key);
    const used = new Set(this.#entries.map(this.#keyOf)).size;
    trim(vectors, UNUSED_MAX + used);
    Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // Texts on which the model failed are not stored, so the next process tries them again.
    writeVectors(path, model, vectors);
  }

  /** Returns the vectors of queries; undefined if the model takes too long. */
  async #queryVectors(queries: readonly string[]): Promise<readonly Float32Array[] | undefined> {
    const texts = queries.map((query) => query.slice(0, LONGEST_QUERY));
    const vectors = new Map<string, Float32Array>();
    const missing = new Set<string>();
    for (const query of texts) {
      const vector = moveLast(this.#queries, query);
      if (vector !== undefined) vectors.set(query, vector);
      // A query of spaces has no meaning, but models return some vector for it.
      else if (/\S/.test(query)) missing.add(query);
    }
    if (missing.size > 0) {
      // If the model hangs, later searches do not wait for it again.
      if (this.#lateQuery !== undefined) return undefined;
      const work = this.#embedQueries([...missing]);
      if (!await settlesWithin(work, this.#owner.queryMs)) {
        const late = work.then(() => {}, (error) => this.#owner.onFailed(error));
        this.#lateQuery = late.finally(() => this.#lateQuery = undefined);
        return undefined;
      }
      // The cache is not read here, because other queries may have replaced these vectors.
      for (const [query, vector] of await work) vectors.set(query, vector);
    }
    return texts.map((query) => vectors.get(query) ?? EMPTY);
  }

  async #embedQueries(queries: readonly string[]): Promise<ReadonlyMap<string, Float32Array>> {
    const vectors = await this.#embed(queries);
    const vectorsByQuery = new Map(queries.map((query, at) => [query, vectors[at] ?? EMPTY]));
    for (const [query, vector] of vectorsByQuery) this.#queries.set(query, vector);
    trim(this.#queries, MOST_QUERIES);
    return vectorsByQuery;
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
  const excess = Math.max(entries.size - most, 0);
  for (const key of [...entries.keys()].slice(0, excess)) entries.delete(key);
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
