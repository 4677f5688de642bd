import assert from "node:assert/strict";
import { asPmlError } from "./errors.ts";

Deno.test("asPmlError() takes a full disk and its like for no bug, and says what to do", () => {
  const table: readonly (readonly [string, RegExp])[] = [
    ["No space left on device (os error 28), writefile 'x'", /Free some space/],
    ["Disk quota exceeded (os error 122)", /Free some space/],
    ["Read-only file system (os error 30)", /writable/],
    ["Too many open files (os error 24)", /ulimit -n/],
  ];
  for (const [said, hint] of table) {
    const error = asPmlError(new Error(said));
    assert.deepEqual([error.code, error.message], [
      "OVERLOADED",
      `Cannot finish the call: ${said}`,
    ]);
    assert.match(error.hint ?? "", hint);
  }
  assert.equal(asPmlError(new TypeError("x is not a function")).code, "BUG");
});
