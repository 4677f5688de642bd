import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { toolId, wireName } from "../core/tool_id.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { Catalog, type CatalogServer } from "./catalog.ts";

function server(name: string): CatalogServer {
  return { name, origin: "registry" };
}

function tools(...names: readonly string[]): ToolDefinition[] {
  return names.map((name) => ({ name, inputSchema: { type: "object" } }));
}

Deno.test("Catalog returns tools by id, by wire name, and as a list sorted by id", () => {
  const catalog = new Catalog();
  catalog.set(server("zeta"), tools("b", "a"));
  catalog.set(server("alpha"), tools("read.file", "x".repeat(100)));
  assert.deepEqual(
    catalog.list().map((entry) => entry.id),
    [`alpha:read.file`, `alpha:${"x".repeat(100)}`, "zeta:a", "zeta:b"],
  );
  for (const { id, tool } of catalog.list()) {
    assert.equal(catalog.byWireName(wireName(id)), id);
    assert.equal(catalog.get(id)?.tool, tool);
  }
  assert.equal(catalog.byWireName("zeta__none"), undefined);
  assert.deepEqual(catalog.toolsOf("zeta").map(({ tool }) => tool.name), ["b", "a"]);
});

Deno.test("set() replaces the tools of a server, and remove() removes them", () => {
  const catalog = new Catalog();
  catalog.set(server("one"), tools("a", "b"));
  catalog.set(server("two"), tools("a"));
  catalog.set(server("one"), tools("b", "c"));
  assert.deepEqual(catalog.list().map(({ id }) => id), ["one:b", "one:c", "two:a"]);
  assert.equal(catalog.byWireName("one__a"), undefined);
  catalog.remove("one");
  assert.deepEqual(catalog.list().map(({ id }) => id), ["two:a"]);
});

Deno.test("set() returns each refused tool with a reason, and adds the others", () => {
  const catalog = new Catalog();
  const rejected = catalog.set(server("one"), tools("a", "bad  name", "a", "x\u202ey", "b"));
  assert.deepEqual(catalog.list().map(({ id }) => id), ["one:a", "one:b"]);
  assert.deepEqual(rejected.map(({ name }) => name), ["bad  name", "a", "x\u202ey"]);
  const many = catalog.set(
    server("two"),
    tools(...Array.from({ length: 50_000 }, (_, n) => `t${n}`)),
  );
  assert.deepEqual(many.map(({ name }) => name), ["t49998", "t49999"]);
  assert.match(rejected[0]?.reason ?? "", /characters/);
  assert.match(rejected[1]?.reason ?? "", /another tool/);
  assert.match(many[0]?.reason ?? "", /already contains 50000 tools/);
});

Deno.test("set() refuses a second tool that clients would see under the same name", () => {
  const catalog = new Catalog();
  const long = "x".repeat(100);
  const twin = wireName(toolId("one", long)).slice("one__".length);
  const rejected = catalog.set(server("one"), tools(long, twin));
  assert.deepEqual(rejected.map(({ name }) => name), [twin]);
  assert.equal(catalog.byWireName(`one__${twin}`), `one:${long}`);
});

Deno.test("set() refuses a definition that is nested too deep to be sent", () => {
  let deep: JsonObject = {};
  for (let i = 0; i < 100_000; i++) deep = { items: deep };
  const catalog = new Catalog();
  const rejected = catalog.set(server("one"), [
    { name: "deep", inputSchema: deep },
    ...tools("plain"),
  ]);
  assert.deepEqual(rejected.map(({ name }) => name), ["deep"]);
  assert.deepEqual(catalog.list().map(({ id }) => id), ["one:plain"]);
});

Deno.test("list() returns the same array until the catalog changes", () => {
  const catalog = new Catalog();
  catalog.set(server("one"), tools("a"));
  const before = catalog.list();
  assert.equal(catalog.list(), before);
  catalog.set(server("one"), tools("b"));
  assert.notEqual(catalog.list(), before);
});
