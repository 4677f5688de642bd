import assert from "node:assert/strict";
import { pageOf } from "./_pages.ts";

Deno.test("pageOf() gives each item once, in order, and says where the rest begins", () => {
  const all = Array.from({ length: 2_500 }, (_, at) => ({ name: `${at}` }));
  const seen: unknown[] = [];
  const sizes: number[] = [];
  for (let params = {}; params !== undefined;) {
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
