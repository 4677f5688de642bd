import assert from "node:assert/strict";
import { isLonger } from "./json_length.ts";

Deno.test("isLonger() compares about the length of the JSON, and looks at no more than it has to", () => {
  for (const value of ["x".repeat(98), Array(50).fill(1), { a: "b".repeat(90) }, [[[["deep"]]]]]) {
    const { length } = JSON.stringify(value);
    assert.equal(isLonger(value, length * 3), false);
    assert.equal(isLonger(value, length / 3), true);
  }
  let looked = 0;
  const rows = Array.from({ length: 1_000 }, () => ({
    get text() {
      looked++;
      return "x".repeat(100);
    },
  }));
  assert.equal(isLonger(rows, 2_000), true);
  assert.ok(looked < 50, `${looked} of 1000`);
});
