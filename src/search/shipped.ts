/**
 * Loads the data of search that ships with PML, at the first search: word vectors, and examples of
 * requests.
 *
 * @module
 */

import type { ShippedExamples } from "./examples.ts";
import { WordVectors } from "./word_vectors.ts";

/** Reads the word vectors. */
export async function shippedWords(): Promise<WordVectors> {
  const { default: text } = await import("../../config/word-vectors.txt", {
    with: { type: "text" },
  });
  return new WordVectors(text);
}

/** Reads the examples. */
export async function shippedExamples(): Promise<ShippedExamples> {
  const { default: examples } = await import("../../config/search-examples.json", {
    with: { type: "json" },
  });
  return examples;
}
