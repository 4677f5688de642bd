/**
 * Examples of requests for which a tool is meant. They raise a tool among those that match anyway,
 * and never make one match, so that a server cannot attract requests for other tools with them.
 *
 * @module
 */

import { isObject } from "../core/json.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import type { CatalogEntry } from "./catalog.ts";
import { termsOf } from "./terms.ts";

/** The key in `_meta` of a tool. Modules also have the member `examples`. */
const KEY = "ai.casys.pml/examples";
/** Further examples of a tool, and the rest of a longer text, are ignored. */
const MOST = 10;
const LONGEST = 120;
/** The least similarity of a query and an example. */
const LIKE = 0.5;

/** Examples that ship with PML, by server and tool. */
export type ShippedExamples = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;

/** Returns the examples in a definition of a tool. */
export function examplesIn(tool: ToolDefinition): readonly string[] {
  const { examples, _meta } = tool;
  return [examples, isObject(_meta) ? _meta[KEY] : undefined]
    .flatMap((list) => Array.isArray(list) ? list : [])
    .filter((text) => typeof text === "string").slice(0, MOST)
    .map((text) => text.slice(0, LONGEST));
}

/** Compares queries with the examples of tools. */
export class Examples {
  readonly #shipped: ShippedExamples;
  readonly #words = new WeakMap<CatalogEntry, readonly ReadonlySet<string>[]>();

  /** Takes the examples that ship with PML. */
  constructor(shipped: ShippedExamples = {}) {
    this.#shipped = shipped;
  }

  /** Returns how similar the most similar example of a tool is, from 0 to 1. */
  fit(terms: ReadonlySet<string>, entry: CatalogEntry): number {
    let most = 0;
    for (const words of this.#wordsOf(entry)) {
      let common = 0;
      for (const word of words) if (terms.has(word)) common += 1;
      most = Math.max(most, common / Math.sqrt(words.size * terms.size));
    }
    return most >= LIKE ? most : 0;
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
