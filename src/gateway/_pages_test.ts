import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { Pages } from "./_pages.ts";

function pageOf(name: string, items: readonly JsonObject[], params: JsonObject): JsonObject {
  return new Pages().of({ name, items, about: {} }, params);
}

Deno.test("pageOf() gives each item once, in order, and says where the rest begins", () => {
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

Deno.test("pageOf() refuses a cursor that it did not give", () => {
  for (const cursor of ["x", "from-", "from--1", "from-3", "from-1e3", 4, null]) {
    assert.throws(() => pageOf("tools", [{}, {}], { cursor }), /cursor/, `${cursor}`);
  }
  assert.deepEqual(pageOf("tools", [{}, {}], { cursor: "from-2" }), { tools: [] });
});

Deno.test("Pages gives the same page as long as nothing in it is another", () => {
  const pages = new Pages();
  const items = Array.from({ length: 1_500 }, (_, at) => ({ name: `${at}` }));
  const of = (all: readonly JsonObject[], about: JsonObject = {}, params: JsonObject = {}) =>
    pages.of({ name: "tools", items: all, about }, params);
  const first = of(items);
  assert.equal(of([...items]), first);
  assert.equal(of(items.with(1_200, { name: "other" })), first, "it is on the next page");
  const other = of(items.with(3, { name: "3" }));
  assert.notEqual(other, first);
  assert.notEqual(of(items), first, "only the last one is remembered");
  assert.deepEqual(of(items, { ttlMs: 1 }), { ...first, ttlMs: 1 });
  assert.notEqual(of(items.slice(0, 900)), of(items.slice(0, 901)));
  assert.equal((of(items, {}, { cursor: "from-1000" }).tools as unknown[]).length, 500);
  assert.equal("nextCursor" in of(items.slice(0, 1_000)), false);
});
