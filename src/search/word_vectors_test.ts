import assert from "node:assert/strict";
import { sha256 } from "../core/hash.ts";
import { readFileSync } from "node:fs";
import { catalogOf } from "./_servers_fixture_test.ts";
import { shippedWords } from "./shipped.ts";
import { Search } from "./search.ts";
import { WordMeaning } from "./word_meaning.ts";
import { vectorsText, WordVectors } from "./word_vectors.ts";

/** Returns a vector of 64 numbers that begins with these. */
function row(...numbers: readonly number[]): number[] {
  return Array.from({ length: 64 }, (_, at) => numbers[at] ?? 0);
}

function vectors(words: Readonly<Record<string, readonly number[]>>): WordVectors {
  const numbers = Float32Array.from(Object.values(words).flatMap((each) => row(...each)));
  return new WordVectors(vectorsText(Object.keys(words), numbers));
}

function cosine(one: Float32Array | undefined, other: Float32Array | undefined): number {
  assert.ok(one !== undefined && other !== undefined);
  return one.reduce((sum, value, at) => sum + value * (other[at] ?? 0), 0);
}

Deno.test("vectorsText() and WordVectors keep vectors of any scale exact enough", () => {
  const words = vectors({ small: [0.0031, -0.004], big: [31, -40], "0": [1] });
  const one = words.vectorOf("small");
  assert.ok(Math.abs(cosine(one, words.vectorOf("big")) - 1) < 1e-3);
  assert.ok(Math.abs((one?.[0] ?? 0) - 0.612) < 0.01);
  assert.ok(words.has("small") && words.has("0") && !words.has("other"));
});

Deno.test("vectorOf() adds the vectors of the words, with a length of one", () => {
  const words = vectors({ read: [1, 0], fil: [0, 3] });
  const vector = words.vectorOf("Reading the FILES of nowhere");
  assert.ok(Math.abs((vector?.[1] ?? 0) / (vector?.[0] ?? 1) - 3) < 0.05);
  assert.ok(Math.abs(cosine(vector, vector) - 1) < 1e-6);
  assert.equal(words.vectorOf("nowhere"), undefined);
});

Deno.test("WordMeaning returns NaN for texts without a known word, and follows the tools", async () => {
  const meaning = new WordMeaning(vectors({ read: [1], writ: [0, 1] }));
  const entries = catalogOf({ one: { read: "", write: "", xyzzy: "" } }).list();
  const [near, none] = await meaning.similarities(["read", "unknown"], entries);
  assert.deepEqual([near?.[0], near?.[1], near?.[2]], [1, 0, NaN]);
  assert.ok(none?.every(Number.isNaN));
  const [fewer] = await meaning.similarities(["write"], entries.slice(1));
  assert.deepEqual([fewer?.[0], fewer?.[1]], [1, NaN]);
});

Deno.test("the words that ship are those of the training, and are near words of the same meaning", async () => {
  const file = new URL("../../config/word-vectors.txt", import.meta.url);
  const sum = readFileSync(
    new URL("../../tools/model/word-vectors.sha256", import.meta.url),
    "utf8",
  );
  assert.equal(sha256(readFileSync(file)), sum.trim());
  const words = await shippedWords();
  const near = (one: string, other: string) => cosine(words.vectorOf(one), words.vectorOf(other));
  assert.ok(near("picture", "photo") > near("picture", "invoice") + 0.2);
  assert.ok(
    near("delete a folder", "remove directory") > near("delete a folder", "send mail") + 0.2,
  );
});

Deno.test("search() finds a tool by the meaning of words that it does not contain", async () => {
  const words = await shippedWords();
  const catalog = catalogOf({
    shop: { place_order: "Order goods", refund: "Give money back to a customer" },
    zoo: { feed: "Give food to an elephant", count: "Count the visitors of today" },
  });
  const search = new Search(catalog, {
    semantics: () => [new WordMeaning(words)],
    words: () => words,
  });
  const { mode, hits } = await search.search("reimburse a client");
  assert.equal(mode, "builtin");
  assert.equal(hits[0]?.id, "shop:refund");
});
