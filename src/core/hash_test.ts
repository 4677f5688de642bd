import assert from "node:assert/strict";
import { sha256 } from "./hash.ts";

Deno.test("sha256() hashes text as its UTF-8 bytes", () => {
  const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
  assert.equal(sha256(""), empty);
  assert.equal(sha256("é"), sha256(new TextEncoder().encode("é")));
  assert.notEqual(sha256("a"), sha256("b"));
});
