import assert from "node:assert/strict";
import type { JsonObject } from "../../core/json.ts";
import { Able } from "./_able.ts";

Deno.test("experimental capabilities count only if all clients have the same ones", () => {
  const all: JsonObject[] = [];
  const able = new Able((together) => void all.push(together));
  const extensions = { a: {} };
  able.take({ experimental: { x: 1 }, extensions });
  assert.deepEqual(all.at(-1), { experimental: { x: 1 }, extensions });
  able.take({ experimental: { x: 1 }, roots: {} });
  assert.deepEqual(all.at(-1), { experimental: { x: 1 }, extensions, roots: {} });
  able.take({ sampling: {} });
  assert.deepEqual(all.at(-1), { extensions, roots: {}, sampling: {} });
});
