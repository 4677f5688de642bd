import assert from "node:assert/strict";
import fc from "fast-check";
import { sha256, sha256Async } from "./hash.ts";

Deno.test("sha256Async() returns the hash that sha256() returns", async () => {
  const bytes = fc.uint8Array({ maxLength: 300 }).map((all) => new Uint8Array(all));
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.string({ unit: "binary" }), bytes), async (data) => {
      assert.equal(await sha256Async(data), sha256(data));
    }),
  );
  assert.equal(await sha256Async("\ud800"), sha256("\ud800"));
});
