import assert from "node:assert/strict";
import fc from "fast-check";
import { argumentShape, argumentSize } from "./shape.ts";

Deno.test("shapeOf() returns names, types and sizes", () => {
  const value = {
    path: "a/b",
    head: 3,
    all: true,
    none: null,
    list: [1, 2],
    deep: { x: { y: {} } },
  };
  assert.deepEqual(argumentShape(value), {
    path: "string(3)",
    head: "number",
    all: "boolean",
    none: "null",
    list: "array(2)",
    deep: { x: "object(1)" },
  });
});

Deno.test("shapeOf() replaces unusual names by their length, and limits their number", () => {
  const many = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`k${i}`, i]));
  const shape = argumentShape({
    "me@example.com": 1,
    ["__proto__"]: 2,
    [`${"x".repeat(65)}`]: 3,
    many,
  });
  const text = JSON.stringify(shape);
  assert.ok(!text.includes("example"));
  assert.ok(text.includes("<name 1: 14 characters>"));
  assert.ok(text.includes('"__proto__":"number"'));
  assert.ok(text.includes('"…":"8 more"'));
});

Deno.test("shapeOf() never contains a text of the value", () => {
  const secret = "SECRET-VALUE";
  const leaf = fc.oneof(fc.constant(secret), fc.integer(), fc.constant(null));
  const value = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      leaf,
      fc.array(tie("node")),
      fc.dictionary(fc.oneof(fc.string(), fc.constant(`a ${secret}`)), tie("node")),
    ),
  })).node;
  fc.assert(fc.property(value, (any) => {
    const text = JSON.stringify(argumentShape(any));
    assert.ok(!text.includes(secret));
    assert.ok(text.length < 200_000);
  }));
});

Deno.test("sizeOf() counts characters, and stops early in a large value", () => {
  assert.equal(argumentSize({ content: [{ type: "text", text: "12345" }], n: 1 }), 4 + 5 + 8);
  assert.ok(argumentSize(Array.from({ length: 1e6 }, () => [1, 2, 3])) <= 8 * 20_000);
});
