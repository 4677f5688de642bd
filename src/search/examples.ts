/**
 * Examples of requests for which a tool is meant. Examples raise the scores of tools that match
 * anyway. They never make a tool match, so that a server cannot attract requests for other tools.
 *
 * @module
 */

import { examplesIn } from "../protocol/tool_examples.ts";
import type { CatalogEntry } from "./catalog.ts";
import { termsOf } from "./terms.ts";

/** The least similarity of a query and an example. */
const SIMILARITY_MIN = 0.5;

/** Examples that ship with PML, by server and tool. */
export type ShippedExamples = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/** Compares queries with the examples of tools. */
export class Examples {
  readonly #shipped: ShippedExamples;
  readonly #words = new WeakMap<CatalogEntry, readonly ReadonlySet<string>[]>();

  /** Creates an instance with the examples that ship with PML. */
  constructor(shipped: ShippedExamples = {}) {
    this.#shipped = shipped;
  }

  /** Returns how similar the most similar example of a tool is, from 0 to 1. */
  similarity(terms: ReadonlySet<string>, entry: CatalogEntry): number {
    let best = 0;
    for (const words of this.#wordsOf(entry)) {
      let common = 0;
      for (const word of words) if (terms.has(word)) common += 1;
      best = Math.max(best, common / Math.sqrt(words.size * terms.size));
    }
    return best >= SIMILARITY_MIN ? best : 0;
  }

  #wordsOf(entry: CatalogEntry): readonly ReadonlySet<string>[] {
    let words = this.#words.get(entry);
    if (words === undefined) {
      const { server, tool } = entry;
      const shipped = Object.hasOwn(this.#shipped, server.name) ? this.#shipped[server.name] : {};
      const texts = shipped && Object.hasOwn(shipped, tool.name) ? shipped[tool.name] : [];
      words = [...examplesIn(tool), ...texts ?? []].map((text) => new Set(termsOf(text)))
        .filter(({ size }) => size > 0);
      this.#words.set(entry, words);
    }
    return words;
  }
}
