import assert from "node:assert/strict";
import fc from "fast-check";
import { PmlError } from "../core/errors.ts";
import { NO_PERMISSIONS, parseModuleMeta } from "./tool.ts";

Deno.test("parseModuleMeta() returns each tool with its own permissions or the module's", () => {
  const meta = parseModuleMeta({
    name: "x",
    permissions: { read: ["."] },
    tools: { a: { description: "A" }, b: { permissions: { write: ["out"] } } },
  }, "x.ts");
  assert.deepEqual(meta.tools.map((tool) => tool.permissions), [
    { ...NO_PERMISSIONS, read: ["."] },
    { ...NO_PERMISSIONS, write: ["out"] },
  ]);
  assert.deepEqual(meta.tools[0]?.definition, {
    name: "a",
    description: "A",
    inputSchema: { type: "object" },
  });
});

Deno.test("parseModuleMeta() reports the invalid key, its value and the expected type", () => {
  const table: readonly (readonly [unknown, RegExp])[] = [
    [undefined, /__meta__ is undefined, /],
    [{ name: "A B", tools: {} }, /__meta__\.name is/],
    [{ name: "x" }, /__meta__\.tools is/],
    [{ name: "x", tools: { "a b": {} } }, /__meta__\.tools\.a b is/],
    [{ name: "x", tools: { a: 1 } }, /__meta__\.tools\.a is 1, wanted an object/],
    [{ name: "x", tools: { a: { inputSchema: "x" } } }, /__meta__\.tools\.a\.inputSchema/],
    [{ name: "x", tools: { a: { description: 1 } } }, /__meta__\.tools\.a\.description/],
    [{ name: "x", permissions: { ffi: [] }, tools: {} }, /permissions\.ffi/],
    [{ name: "x", permissions: { read: true }, tools: {} }, /permissions\.read is true/],
  ];
  for (const [value, message] of table) {
    assert.throws(() => parseModuleMeta(value, "x.ts"), message);
  }
  fc.assert(fc.property(fc.anything(), (value) => {
    try {
      parseModuleMeta(value, "x.ts");
    } catch (error) {
      assert.ok(error instanceof PmlError && error.code === "CONFIG_INVALID");
    }
  }));
});
