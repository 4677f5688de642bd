/**
 * The meanings of tools as vectors: made once for each text, kept in the PML home, compared with
 * those of queries.
 *
 * @module
 */

import { dirname } from "node:path";
import { sha256 } from "../core/hash.ts";
import { memoized } from "../core/memo.ts";
import { soon } from "../io/waiting.ts";
import { type Kept, keptOf, readVectors, UNKNOWN, writeVectors } from "./_vector_file.ts";
import type { CatalogEntry } from "./catalog.ts";
import { meaningText } from "./meaning_text.ts";
import type { Semantics } from "./semantics.ts";

/** Makes a vector of length one of each text; none of a text that the model makes nothing of. */
export type Embed = (
  texts: readonly string[],
  signal: AbortSignal,
) => Promise<readonly (Float32Array | undefined)[]>;

/** What vectors need from outside. */
export interface VectorsOptions {
  /** The file that keeps them. */
  readonly path: string;
  /** The hash of the model, 64 hexadecimal digits: the vectors of another are none. */
  readonly model: string;
  readonly embed: Embed;
  /** Gives up what is under way. */
  readonly closing: AbortSignal;
  /** Is told how many tools of how many have vectors, now and then and at the end. */
  readonly onProgress: (done: number, total: number) => void;
  /** Is told what goes wrong; it is tried again at a later search. */
  readonly onFailure: (error: unknown) => void;
  /** How long a search waits for the vector of its query. */
  readonly queryMs?: number;
}

/** A text without a vector. */
interface Missing {
  readonly key: string;
  readonly text: string;
}

/** How many texts go to the model at once: while they do, queries wait. */
const BATCH = 8;
const TOLD_EVERY = 200;
const SAVED_EVERY = 512;
const MOST_QUERIES = 200;
/** What models read of a text is less. */
const LONGEST_QUERY = 1_000;
const QUERY_MS = 5_000;
const HARMLESS = "a";
/** The vector of what has no meaning. */
const NONE = new Float32Array();
/** How many vectors are kept beside those of the tools of now, which may come back. */
const MOST_OTHERS = 10_000;

/** The vectors of a catalog. */
export class Vectors implements Semantics {
  readonly #options: VectorsOptions;
  readonly #keyOf = memoized((entry: CatalogEntry) => keyOf(meaningText(entry)));
  readonly #queries = new Map<string, Float32Array>();
  #known: Map<string, Kept> | undefined;
  #entries: readonly CatalogEntry[] = [];
  /** What the entries of now are kept as; nothing while some are not. */
  #rows: readonly Kept[] | undefined;
  #work: Promise<void> | undefined;
  #late: Promise<void> | undefined;

  /** Reads nothing before the first search. */
  constructor(options: VectorsOptions) {
    this.#options = options;
  }

  /** Gives the cosine of each entry for each query, or starts the work that makes it possible. */
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
      this.#options.onFailure(error);
      return undefined;
    }
  }

  /** Tells how many of these tools have vectors. */
  count(entries: readonly CatalogEntry[]): number {
    const known = this.#load();
    return entries.filter((entry) => known.has(this.#keyOf(entry))).length;
  }

  /** Makes the vectors of these tools and tells of it; throws what goes wrong. */
  async make(entries: readonly CatalogEntry[], tell: VectorsOptions["onProgress"]): Promise<void> {
    this.#follow(entries);
    await this.#index(tell);
  }

  /** Waits for what is under way, which `closing` gives up. */
  async settled(): Promise<void> {
    await Promise.all([this.#work, this.#late]);
  }

  #load(): Map<string, Kept> {
    this.#known ??= readVectors(this.#options.path, this.#options.model);
    return this.#known;
  }

  #follow(entries: readonly CatalogEntry[]): readonly Kept[] | undefined {
    if (entries === this.#entries && this.#rows !== undefined) return this.#rows;
    this.#entries = entries;
    const known = this.#load();
    const rows = entries.flatMap((entry) => known.get(this.#keyOf(entry)) ?? []);
    this.#rows = rows.length === entries.length ? rows : undefined;
    return this.#rows;
  }

  #begin(): void {
    const { onProgress, onFailure } = this.#options;
    this.#work ??= this.#index(onProgress).catch(onFailure).finally(() => this.#work = undefined);
  }

  async #index(tell: VectorsOptions["onProgress"]): Promise<void> {
    let [made, unsaved] = [0, 0];
    let queue: Missing[] = [];
    const next = () => {
      // What comes meanwhile is looked at when all before is done.
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

  async #make(batch: readonly Missing[]): Promise<number> {
    const texts = batch.map(({ text }) => text);
    const vectors = await this.#embed(texts);
    const known = this.#load();
    batch.forEach(({ key }, at) => {
      const vector = vectors[at];
      known.set(key, vector === undefined ? UNKNOWN : keptOf(vector));
    });
    return batch.length;
  }

  /** Makes vectors: one text that the model fails on must not keep all others from it. */
  async #embed(texts: readonly string[]): ReturnType<Embed> {
    const { embed, closing } = this.#options;
    try {
      return await embed(texts, closing);
    } catch (error) {
      // What is alone is tried once more only where the model works.
      if (texts.length === 1) await this.#mustWork(error);
    }
    const vectors = [];
    for (const text of texts) {
      const alone = embed([text], closing);
      const [vector] = await alone.catch(async (error) => {
        await this.#mustWork(error);
        return [];
      });
      vectors.push(vector);
    }
    return vectors;
  }

  /** Throws what went wrong where the model fails on anything. */
  async #mustWork(error: unknown): Promise<void> {
    const { embed, closing } = this.#options;
    if (closing.aborted) throw error;
    await embed([HARMLESS], closing).catch(() => {
      throw error;
    });
  }

  /** Gives the texts without a vector, each once, the short ones first: a batch is as long as its longest. */
  #missing(): Missing[] {
    const known = this.#load();
    const missing = new Map<string, string>();
    for (const entry of this.#entries) {
      const key = this.#keyOf(entry);
      if (!known.has(key)) missing.set(key, meaningText(entry));
    }
    return [...missing].map(([key, text]) => ({ key, text }))
      .sort((one, other) => one.text.length - other.text.length);
  }

  #save(): number {
    const { path, model } = this.#options;
    const known = this.#load();
    // Another PML may have made others meanwhile.
    for (const [key, kept] of readVectors(path, model)) if (!known.has(key)) known.set(key, kept);
    // Those that were not used for longest stand first, and go first.
    for (const key of this.#entries.map(this.#keyOf)) moveLast(known, key);
    const used = new Set(this.#entries.map(this.#keyOf)).size;
    trim(known, MOST_OTHERS + used);
    Deno.mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    // What the model failed on is tried again by the next PML.
    writeVectors(path, model, known);
    return 0;
  }

  /** Gives the vectors of queries; nothing where the model takes too long. */
  async #vectorsOf(queries: readonly string[]): Promise<readonly Float32Array[] | undefined> {
    const asked = queries.map((query) => query.slice(0, LONGEST_QUERY));
    const vectors = new Map<string, Float32Array>();
    const missing = new Set<string>();
    for (const query of asked) {
      const vector = moveLast(this.#queries, query);
      if (vector !== undefined) vectors.set(query, vector);
      // What says nothing has no meaning; models answer it with anything, or with nothing.
      else if (/\S/.test(query)) missing.add(query);
    }
    if (missing.size > 0) {
      // One that hangs is not waited for again by every search.
      if (this.#late !== undefined) return undefined;
      const work = this.#ask([...missing]);
      if (!await soon(work, this.#options.queryMs ?? QUERY_MS)) {
        const late = work.then(() => {}, this.#options.onFailure);
        this.#late = late.finally(() => this.#late = undefined);
        return undefined;
      }
      // Not what is kept: the queries of others may have taken its place already.
      for (const [query, vector] of await work) vectors.set(query, vector);
    }
    return asked.map((query) => vectors.get(query) ?? NONE);
  }

  async #ask(queries: readonly string[]): Promise<ReadonlyMap<string, Float32Array>> {
    const vectors = await this.#embed(queries);
    const made = new Map(queries.map((query, at) => [query, vectors[at] ?? NONE]));
    for (const [query, vector] of made) this.#queries.set(query, vector);
    trim(this.#queries, MOST_QUERIES);
    return made;
  }
}

/** Gives what is kept by a key, which goes last from now on. */
function moveLast<T>(kept: Map<string, T>, key: string): T | undefined {
  const value = kept.get(key);
  if (value === undefined) return undefined;
  kept.delete(key);
  kept.set(key, value);
  return value;
}

/** Takes the first away where there are more. */
function trim(kept: Map<string, unknown>, most: number): void {
  const over = Math.max(kept.size - most, 0);
  for (const key of [...kept.keys()].slice(0, over)) kept.delete(key);
}

function keyOf(text: string): string {
  return sha256(text).slice(0, 32);
}

function cosines(query: Float32Array, rows: readonly Kept[]): Float32Array {
  return Float32Array.from(rows, ({ codes, scale }) => {
    if (query.length === 0) return NaN;
    let sum = 0;
    for (let at = 0; at < codes.length; at++) sum += (codes[at] ?? 0) * (query[at] ?? 0);
    return sum * scale;
  });
}
