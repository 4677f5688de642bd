import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import type { CatalogEntry } from "./catalog.ts";
import { makeRanking } from "./lexical.ts";

function entry(name: string, description: string): CatalogEntry {
  const tool = { name, description, inputSchema: {} };
  return { id: toolId("s", name), tool, server: { name: "s", origin: "builtin" } };
}

function ranking(query: string, ...entries: readonly CatalogEntry[]): string[] {
  const byId = entries.toSorted((one, other) => one.id < other.id ? -1 : 1);
  return makeRanking(byId)(query, () => true).map((ranked) => ranked.entry.tool.name);
}

Deno.test("makeRanking() prefers rare words to common ones, names to descriptions, short texts to long", () => {
  const common = [1, 2, 3].map((n) => entry(`c${n}`, "common word"));
  assert.equal(ranking("common rare", ...common, entry("z", "rare word"))[0], "z");
  assert.deepEqual(ranking("boat", entry("a", "boat"), entry("boat", "a")), ["boat", "a"]);
  assert.deepEqual(ranking("boat", entry("a", "boat of long words told"), entry("b", "boat")), [
    "b",
    "a",
  ]);
});

Deno.test("makeRanking() prefers the tool whose whole name is asked for", () => {
  assert.deepEqual(
    ranking("boat", entry("boat_sail", "boat boat boat boat"), entry("boat", "one")),
    ["boat", "boat_sail"],
  );
});

Deno.test("makeRanking() breaks ties by id", () => {
  assert.deepEqual(ranking("same", entry("b", "same"), entry("c", "same"), entry("a", "same")), [
    "a",
    "b",
    "c",
  ]);
});

Deno.test("makeRanking() counts a word that fills a field as often as it can, and no further", () => {
  const filled = entry("a", "word ".repeat(32));
  assert.deepEqual(ranking("word", filled, entry("b", `${"word ".repeat(31)}boat`)), ["a", "b"]);
});
