import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { mcpName, wireName } from "../core/tool_id.ts";
import { Catalog } from "../search/catalog.ts";
import { RenderedLists } from "./rendered_lists.ts";

function pageOf(name: string, items: readonly JsonObject[], params: JsonObject): JsonObject {
  return new RenderedLists().page({ name, items, otherMembers: {} }, params);
}

Deno.test("page() returns each item once, in order, with a cursor for the rest", () => {
  const all = Array.from({ length: 2_500 }, (_, at) => ({ name: `${at}` }));
  const seen: unknown[] = [];
  const sizes: number[] = [];
  for (let params: JsonObject | undefined = {}; params !== undefined;) {
    const { tools, nextCursor } = pageOf("tools", all, params);
    seen.push(...tools as object[]);
    sizes.push((tools as object[]).length);
    if (nextCursor === undefined) break;
    params = { cursor: nextCursor };
  }
  assert.deepEqual(seen, all);
  assert.deepEqual(sizes, [1_000, 1_000, 500]);
  assert.deepEqual(pageOf("tools", all.slice(0, 1_000), {}), { tools: all.slice(0, 1_000) });
});

Deno.test("page() refuses a cursor that it did not create", () => {
  const all = [{ name: "a" }, { name: "b" }];
  for (const cursor of ["x", "2", "-1-a", "1e3-a", "a-1", 4, null]) {
    assert.throws(() => pageOf("tools", all, { cursor }), /cursor/, `${cursor}`);
  }
  assert.deepEqual(pageOf("tools", all, { cursor: "2-b" }), { tools: [] });
  assert.deepEqual(pageOf("tools", all, { cursor: "7-z" }), { tools: [] });
  assert.deepEqual(pageOf("tools", all, { cursor: "0-z" }), { tools: all });
});

Deno.test("page() skips and repeats nothing in a list that changes between two pages", () => {
  const all = Array.from({ length: 1_500 }, (_, at) => ({ name: `${at}`, uri: `u:${at}\n-1` }));
  const { nextCursor = "" } = pageOf("resources", all, {});
  const next = (items: readonly JsonObject[]) =>
    pageOf("resources", items, { cursor: nextCursor }).resources;
  const rest = all.slice(1_000);
  assert.deepEqual(next(all), rest);
  assert.deepEqual(next([{ uri: "new" }, ...all]), rest);
  assert.deepEqual(next(all.slice(3)), rest);
  assert.deepEqual(next(all.toSpliced(999, 1)), rest, "the last item of the page is gone");
  assert.deepEqual(next(all.slice(0, 900)), []);
});

Deno.test("RenderedLists caches no text of a cursor", () => {
  const lists = new RenderedLists();
  const items = [{ name: "a" }, { name: "b" }];
  const pageAt = (cursor: string) =>
    lists.page({ name: "tools", items, otherMembers: {} }, { cursor });
  assert.equal(pageAt(`1-${"x".repeat(1_000_000)}`), pageAt("1-y"));
});

Deno.test("page() returns the same page as long as its items are the same", () => {
  const lists = new RenderedLists();
  const items = Array.from({ length: 1_500 }, (_, at) => ({ name: `${at}` }));
  const of = (all: readonly JsonObject[], about: JsonObject = {}, params: JsonObject = {}) =>
    lists.page({ name: "tools", items: all, otherMembers: about }, params);
  const first = of(items);
  assert.equal(of([...items]), first);
  assert.equal(of(items.with(1_200, { name: "other" })), first, "it is on the next page");
  const other = of(items.with(3, { name: "3" }));
  assert.notEqual(other, first);
  assert.notEqual(of(items), first, "only the last one is remembered");
  assert.deepEqual(of(items, { ttlMs: 1 }), { ...first, ttlMs: 1 });
  assert.notEqual(of(items.slice(0, 900)), of(items.slice(0, 901)));
  assert.equal((of(items, {}, { cursor: "1000-999" }).tools as unknown[]).length, 500);
  assert.equal("nextCursor" in of(items.slice(0, 1_000)), false);
});

Deno.test("tool() returns the same object for each name of a tool, with safe texts", () => {
  const lists = new RenderedLists();
  const catalog = new Catalog();
  const server = { name: "s", origin: "private" };
  const tool = { name: "a.b", description: "x\u200b", inputSchema: {} };
  catalog.set(server, [tool], { unapproved: new Set([tool]) });
  const [entry] = catalog.list();
  assert.ok(entry);
  const names = (["own", "prefixed", "long"] as const).map((naming) => {
    const shown = lists.tool(entry, naming);
    assert.equal(lists.tool(entry, naming), shown);
    assert.match(shown.description ?? "", /^\[PML: .*\] x\\u\{200b\}$/);
    return shown.name;
  });
  assert.deepEqual(names, ["a.b", wireName(entry.id), mcpName(entry.id)]);
  catalog.set(server, [tool]);
  const [other = entry] = catalog.list();
  assert.equal(lists.tool(other, "own").description, "x\\u{200b}");
});
