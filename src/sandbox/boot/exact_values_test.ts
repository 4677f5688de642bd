import assert from "node:assert/strict";
import { parseWithBigInts, withBigInts, withNumbers } from "./exact_values.ts";

const BIG = 725653563933458432n;

Deno.test("parseWithBigInts() reads an integer beyond 2^53 as a BigInt, and nothing else", () => {
  const text = `{"a":${BIG},"b":[-9007199254740993,1.5,1.0],"c":"${BIG}","d":725653563933458432.5}`;
  assert.deepEqual(parseWithBigInts(text), {
    ...{ a: BIG, b: [-9007199254740993n, 1.5, 1], c: `${BIG}`, d: Number(BIG) },
  });
  assert.deepEqual(parseWithBigInts('{"a":9007199254740991}'), { a: 9007199254740991 });
});

Deno.test("a library that checks values gets numbers, and its result has the BigInts again", () => {
  const given = { a: BIG, b: [BIG, 1], __proto__: null, c: "x" };
  const checked = withNumbers(given) as Record<string, unknown>;
  assert.deepEqual(checked, { a: Number(BIG), b: [Number(BIG), 1], c: "x" });
  assert.deepEqual(withBigInts({ ...checked, d: 1 }, given), { a: BIG, b: [BIG, 1], c: "x", d: 1 });
  // The library changed it.
  assert.deepEqual(withBigInts({ a: 5 }, given), { a: 5 });
  const plain = { a: 1 };
  assert.equal(withNumbers(plain), plain);
});
