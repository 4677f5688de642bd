import assert from "node:assert/strict";
import { PmlError } from "../core/errors.ts";
import { plainJson } from "./_plain_json.ts";

function read(text: string): unknown {
  return plainJson(new TextEncoder().encode(text), "the result");
}

Deno.test("plainJson() refuses millions of values before it parses them, but accepts a long text", () => {
  const since = performance.now();
  assert.throws(
    () => read(`[${"[],".repeat(4_000_000)}0]`),
    (error) => error instanceof PmlError && error.code === "RESULT_TOO_LARGE",
  );
  assert.ok(performance.now() - since < 5_000);
  for (const text of [",[{".repeat(1_000_000), '\\"[,'.repeat(500_000), "\\".repeat(1_000_001)]) {
    assert.equal(read(JSON.stringify(text)), text);
  }
});

Deno.test("plainJson() refuses deep nesting and keys that reach a prototype", () => {
  for (
    const text of ["[".repeat(300) + "]".repeat(300), '{"__proto__":1}', '[{"constructor":1}]']
  ) {
    assert.throws(() => read(text), { code: "OUTPUT_INVALID" });
  }
  assert.deepEqual(read('{"a":[1,"x",null]}'), { a: [1, "x", null] });
});
