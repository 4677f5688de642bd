import assert from "node:assert/strict";
import { toolId } from "../core/tool_id.ts";
import type { CatalogEntry } from "./catalog.ts";
import { LexicalIndex } from "./lexical.ts";

function entry(name: string, description: string): CatalogEntry {
  const tool = { name, description, inputSchema: {} };
  return { id: toolId("s", name), tool, server: { name: "s", origin: "builtin" } };
}

function ranking(query: string, ...entries: readonly CatalogEntry[]): string[] {
  const byId = entries.toSorted((one, other) => one.id < other.id ? -1 : 1);
  const index = new LexicalIndex();
  index.set(byId);
  const { scores } = index.rank(query);
  return byId.map((each, slot) => ({ name: each.tool.name, score: scores[slot] ?? 0 }))
    .filter(({ score }) => score > 0).sort((one, other) => other.score - one.score)
    .map(({ name }) => name);
}

Deno.test("rank() prefers rare words to common ones, names to descriptions, short texts to long", () => {
  const common = [1, 2, 3].map((n) => entry(`c${n}`, "common word"));
  assert.equal(ranking("common rare", ...common, entry("z", "rare word"))[0], "z");
  assert.deepEqual(ranking("boat", entry("a", "boat"), entry("boat", "a")), ["boat", "a"]);
  assert.deepEqual(ranking("boat", entry("a", "boat of long words told"), entry("b", "boat")), [
    "b",
    "a",
  ]);
});

Deno.test("rank() prefers the tool whose whole name matches", () => {
  assert.deepEqual(
    ranking("boat", entry("boat_sail", "boat boat boat boat"), entry("boat", "one")),
    ["boat", "boat_sail"],
  );
});

Deno.test("rank() returns the same score for identical tools", () => {
  assert.deepEqual(ranking("same", entry("b", "same"), entry("c", "same"), entry("a", "same")), [
    "a",
    "b",
    "c",
  ]);
});

Deno.test("rank() ranks a field of one repeated word above one that contains others", () => {
  const filled = entry("a", "word ".repeat(32));
  assert.deepEqual(ranking("word", filled, entry("b", `${"word ".repeat(31)}boat`)), ["a", "b"]);
});

Deno.test("rank() matches synonyms, and prefers the word itself", () => {
  const tools = [entry("a", "Delete a folder"), entry("b", "Remove a folder"), entry("c", "Tides")];
  assert.deepEqual(ranking("remove directory", ...tools), ["b", "a"]);
  assert.deepEqual(ranking("erase", ...tools), ["a", "b"]);
});

Deno.test("rank() raises a tool whose server has other matching tools", () => {
  const at = (server: string, name: string): CatalogEntry => {
    const tool = { name, description: "Read pages", inputSchema: {} };
    return { id: toolId(server, name), tool, server: { name: server, origin: "builtin" } };
  };
  const entries = [at("lone", "x"), at("many", "x"), at("many", "y"), at("many", "z")];
  const index = new LexicalIndex();
  index.set(entries);
  const [lone = 0, many = 0] = index.rank("read pages").scores;
  assert.ok(many > lone && many < 1.3 * lone);
});

Deno.test("evidence() returns the part of a query that a tool matches, weighted by rarity", () => {
  const index = new LexicalIndex();
  const common = Array.from({ length: 50 }, (_, n) => entry(`c${n}`, "common word"));
  index.set([...common, entry("kite", "rare word")]);
  const of = (query: string, slot: number) => index.evidence(slot, index.rank(query).terms);
  assert.equal(of("rare", 50).covered, 1);
  assert.equal(of("kite", 50).specificity, 2 * of("rare", 50).specificity);
  assert.ok(of("common unheard", 0).covered < 0.1);
  assert.ok(of("common unheard", 0).specificity < 0.1);
  assert.deepEqual(of("", 0), { covered: 0, specificity: 0 });
});

Deno.test("rank() matches a word with a typing mistake, unless a tool has it or it is English", () => {
  const tools = [entry("list_issues", "Show tickets"), entry("create_file", "Write a text")];
  for (const query of ["lsit", "isues", "lisst", "isxues", "tikcets"]) {
    assert.deepEqual(ranking(query, ...tools), ["list_issues"], query);
  }
  // Two edits are too many for a short word, and words of three letters are too similar.
  assert.deepEqual(ranking("lsti xxt", ...tools), []);
  assert.deepEqual(ranking("lsit", ...tools, entry("lsit", "")), ["lsit"]);
  const index = new LexicalIndex();
  index.set(tools);
  assert.deepEqual([...index.rank("creste").matches], [1]);
  assert.deepEqual([...index.rank("tixt", new Set(["tixt"])).matches], []);
  assert.deepEqual([...index.rank("tixt").matches], [1]);
});

Deno.test("rank() matches the long words for a short form", () => {
  const tools = [
    entry("merge", "Merge a pull request"),
    entry("pods", "List pods of Kubernetes"),
    entry("pull", "Pull a branch"),
  ];
  assert.equal(ranking("PR", ...tools)[0], "merge");
  assert.deepEqual(ranking("k8s", ...tools), ["pods"]);
  assert.equal(ranking("list PRs", ...tools, entry("list_prs", "All of them"))[0], "list_prs");
});

Deno.test("evidence() counts a corrected word less than the word itself", () => {
  const index = new LexicalIndex();
  index.set([entry("issues", "List issues")]);
  const covered = (query: string) => index.evidence(0, index.rank(query).terms).covered;
  assert.ok(covered("isues") < covered("issues") && covered("isues") > 0.5);
});
