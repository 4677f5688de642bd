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
  const all = [{ name: "a" }, { name: "b" }];
  for (const cursor of ["x", "2", "-1-a", "1e3-a", "a-1", 4, null]) {
    assert.throws(() => pageOf("tools", all, { cursor }), /cursor/, `${cursor}`);
  }
  assert.deepEqual(pageOf("tools", all, { cursor: "2-b" }), { tools: [] });
  assert.deepEqual(pageOf("tools", all, { cursor: "7-z" }), { tools: [] });
  assert.deepEqual(pageOf("tools", all, { cursor: "0-z" }), { tools: all });
});

Deno.test("pageOf() skips and repeats nothing in a list that changes between two pages", () => {
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

Deno.test("Pages keeps no text of a cursor", () => {
  const pages = new Pages();
  const items = [{ name: "a" }, { name: "b" }];
  const pageAt = (cursor: string) => pages.of({ name: "tools", items, about: {} }, { cursor });
  assert.equal(pageAt(`1-${"x".repeat(1_000_000)}`), pageAt("1-y"));
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
  assert.equal((of(items, {}, { cursor: "1000-999" }).tools as unknown[]).length, 500);
  assert.equal("nextCursor" in of(items.slice(0, 1_000)), false);
});
