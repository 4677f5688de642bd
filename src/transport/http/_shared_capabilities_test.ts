import assert from "node:assert/strict";
import type { JsonObject } from "../../core/json.ts";
import { SharedCapabilities } from "./_shared_capabilities.ts";

Deno.test("experimental capabilities count only if all clients have the same ones", () => {
  const all: JsonObject[] = [];
  const able = new SharedCapabilities((together) => void all.push(together));
  const extensions = { a: {} };
  able.addForRequest({ experimental: { x: 1 }, extensions });
  assert.deepEqual(all.at(-1), { experimental: { x: 1 }, extensions });
  able.addForRequest({ experimental: { x: 1 }, roots: {} });
  assert.deepEqual(all.at(-1), { experimental: { x: 1 }, extensions, roots: {} });
  able.addForRequest({ sampling: {} });
  assert.deepEqual(all.at(-1), { extensions, roots: {}, sampling: {} });
});
