import assert from "node:assert/strict";
import { assertQuick } from "../../../tests/kit/wait.ts";
import { whyUnsafe } from "../../core/schema_size.ts";
import { unusableTools } from "./_safe_schema.ts";

const nested = (depth: number): object => depth === 0 ? {} : { not: nested(depth - 1) };

Deno.test("unsafeSchema() refuses schemas that are too large to be checked", async () => {
  const table: readonly (readonly [object, RegExp])[] = [
    [nested(3_000), /too deep/],
    [{ properties: { enum: { properties: { default: nested(100) } } } }, /too deep/],
    [{ anyOf: Array.from({ length: 3_000 }, () => ({})) }, /subschemas/],
    [{ properties: { const: { anyOf: Array.from({ length: 3_000 }, () => ({})) } } }, /subschemas/],
    [{ enum: Array.from({ length: 60_000 }, () => 0) }, /too many values/],
    [{ description: "x".repeat(1_100_000) }, /too long/],
  ];
  for (const [schema, why] of table) {
    await assertQuick(50, () => {
      assert.match(whyUnsafe(schema) ?? "", why, JSON.stringify(schema).slice(0, 80));
    });
  }
});

Deno.test("unsafeSchema() accepts schemas of real tools", () => {
  const good = [
    {},
    { type: "object", properties: { a: { type: "string", pattern: "^[a-z0-9_-]+$" } } },
    { $defs: { p: { type: "string" } }, properties: { a: { $ref: "#/$defs/p" } } },
    { type: "array", uniqueItems: true },
    { enum: Array.from({ length: 20_000 }, (_, at) => at) },
    // These are checked with a bound, or not checked, so the tool stays usable.
    { $ref: "#" },
    { $ref: "https://example.com/x.json" },
    { properties: { a: { pattern: "^(a|a)*$" } } },
    { enum: [nested(100)] },
    { $schema: "https://example.com/mine" },
  ];
  for (const schema of good) assert.equal(whyUnsafe(schema), undefined);
});

Deno.test("unusableTools() leaves out a tool whose definition is too large in any part", async () => {
  const tool = { name: "a", inputSchema: { type: "object" } };
  const large = { ...tool, name: "b", _meta: { list: Array.from({ length: 60_000 }, () => 0) } };
  const found = await unusableTools([tool, large]);
  assert.match([...found.values()].join(), /too many values/);
  assert.ok(found.has(large));
});
