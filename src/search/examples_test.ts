import assert from "node:assert/strict";
import type { ToolDefinition } from "../protocol/tool.ts";
import { parseModuleMeta } from "../protocol/tool.ts";
import { EXAMPLES_KEY as KEY, examplesIn } from "../protocol/tool_examples.ts";
import { catalogOf, SERVERS } from "./_servers_fixture_test.ts";
import { Catalog } from "./catalog.ts";
import { Search, type SearchSources } from "./search.ts";
import { shippedExamples, shippedWords } from "./shipped.ts";
import { WordMeaning } from "./word_meaning.ts";

function toolWith(name: string, more: Partial<ToolDefinition>): ToolDefinition {
  return { name, inputSchema: { type: "object" }, ...more };
}

async function bestFor(query: string, catalog: Catalog, sources: SearchSources = {}) {
  return (await new Search(catalog, sources).search(query)).hits[0]?.id;
}

Deno.test("examplesIn() returns at most 10 texts of 120 characters, of `examples` and of `_meta`", () => {
  const long = "y".repeat(200);
  const examples = examplesIn(toolWith("a", {
    examples: ["one", 7 as never, null, long],
    _meta: { [KEY]: ["two", ...Array(20).fill("more")], other: ["no"] },
  }));
  assert.equal(examples.length, 10);
  assert.deepEqual(examples.slice(0, 3), ["one", long.slice(0, 120), "two"]);
  for (const wrong of [{}, { examples: "one" }, { examples: { a: 1 } }, { _meta: [KEY] }]) {
    assert.deepEqual(examplesIn(toolWith("a", wrong)), []);
  }
});

Deno.test("search() raises a tool with an example like the query, among those that match", async () => {
  const catalog = new Catalog();
  const described = (name: string, more: Partial<ToolDefinition> = {}) =>
    toolWith(name, { description: "Read the accounts of customers", ...more });
  const set = (more: Partial<ToolDefinition>) =>
    catalog.set({ name: "one", origin: "private" }, [described("a"), described("b", more)]);
  const query = "read accounts of customers";
  set({});
  assert.equal(await bestFor(query, catalog), "one:a");
  set({ examples: ["read new accounts of customers"] });
  assert.equal(await bestFor(query, catalog), "one:b");
  set({ _meta: { [KEY]: ["read new accounts of customers"] } });
  assert.equal(await bestFor(query, catalog), "one:b");
  set({ examples: ["something else about customers and their orders"] });
  assert.equal(await bestFor(query, catalog), "one:a");
  // An example alone makes no tool match.
  set({ examples: ["xyzzy plugh"] });
  assert.equal(await bestFor("xyzzy plugh", catalog), undefined);
});

Deno.test("search() uses the examples that ship with PML for tools of the same server and name", async () => {
  const catalog = catalogOf({ one: { a: "Read accounts", b: "Read accounts" } });
  const examples = (server: string) => () => ({ [server]: { b: ["read new accounts"] } });
  const query = "read accounts";
  assert.equal(await bestFor(query, catalog, { examples: examples("one") }), "one:b");
  assert.equal(await bestFor(query, catalog, { examples: examples("two") }), "one:a");
});

Deno.test("the examples that ship are five short texts for each of 40 servers", async () => {
  const all = Object.entries(await shippedExamples());
  assert.equal(all.length, 40);
  for (const [server, tools] of all) {
    const texts = Object.values(tools).flat();
    assert.equal(new Set(texts).size, 5, server);
    assert.ok(texts.every(({ length }) => length > 5 && length <= 120), server);
  }
});

Deno.test("10,000 examples of one server capture no request for tools of other servers", async () => {
  const words = await shippedWords();
  const meanings = new WordMeaning(words);
  const sources = { semantics: () => [meanings], words: () => words };
  const requests = [
    "read a file",
    "replace the content of a file",
    "open an issue",
    "what will the weather be",
    "file a bug report",
  ];
  const before = catalogOf(SERVERS);
  const catalog = catalogOf(SERVERS);
  const tools = Array.from({ length: 1_000 }, (_, at) =>
    toolWith(`t${at}`, {
      description: "Sells tickets for a lottery",
      examples: [...requests, ...requests.map((text) => `please ${text} for me`)],
    }));
  catalog.set({ name: "hostile", origin: "private" }, tools);
  for (const query of requests) {
    const best = await bestFor(query, before, sources);
    assert.equal(await bestFor(query, catalog, sources), best, query);
    assert.equal(await bestFor(query, catalog), await bestFor(query, before), query);
  }
});

Deno.test("a module may give examples, within the limits", () => {
  const meta = (examples: unknown) => ({ name: "one", tools: { greet: { examples } } });
  const { tools: [tool] } = parseModuleMeta(meta(["say hello"]), "one.ts");
  assert.deepEqual(tool && examplesIn(tool.definition), ["say hello"]);
  for (const wrong of ["say hello", [7], Array(11).fill("x"), ["x".repeat(121)]]) {
    assert.throws(() => parseModuleMeta(meta(wrong), "one.ts"), { code: "CONFIG_INVALID" });
  }
});
