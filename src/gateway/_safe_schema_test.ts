import assert from "node:assert/strict";
import { checkable, unsafeSchema } from "./_safe_schema.ts";

Deno.test("unsafeSchema() refuses what could hold the gateway up", () => {
  const nested = (depth: number): object => depth === 0 ? {} : { not: nested(depth - 1) };
  const doubled: Record<string, object> = { d0: { type: "string" } };
  for (let at = 1; at < 30; at++) {
    doubled[`d${at}`] = { allOf: [{ $ref: `#/$defs/d${at - 1}` }, { $ref: `#/$defs/d${at - 1}` }] };
  }
  const table: readonly (readonly [object, RegExp])[] = [
    [nested(3_000), /too deep/],
    [{ $ref: "#" }, /too deep/],
    [{ $defs: doubled, $ref: "#/$defs/d29" }, /subschemas/],
    [{ anyOf: Array.from({ length: 3_000 }, () => ({})) }, /subschemas/],
    [{ $ref: "https://example.com/x.json" }, /another document/],
    [{ $dynamicRef: "#x" }, /dynamicRef/],
    [{ properties: { a: { pattern: "^(a|a)*$" } } }, /too long/],
    [{ pattern: "^\\s+[a-z]+x$" }, /too long/],
    [{ pattern: "(x+)+y" }, /too long/],
    [{ pattern: "x{1,}y*" }, /too long/],
    [{ pattern: "x+y" }, /too long/],
    [{ pattern: "^a|x+y" }, /too long/],
    [{ patternProperties: { "(a+)+": {} } }, /too long/],
    [{ pattern: "x".repeat(501) }, /too long/],
    [{ type: "array", uniqueItems: true }, /uniqueItems/],
  ];
  for (const [schema, why] of table) {
    const since = performance.now();
    assert.match(unsafeSchema(schema) ?? "", why, JSON.stringify(schema).slice(0, 80));
    assert.ok(performance.now() - since < 50);
  }
});

Deno.test("unsafeSchema() lets pass what tools use", () => {
  const good = [
    {},
    { type: "object", properties: { a: { type: "string", pattern: "^[a-z0-9_-]+$" } } },
    { $defs: { p: { type: "string" } }, properties: { a: { $ref: "#/$defs/p" } } },
    { pattern: "^\\d{4}-\\d{2}-\\d{2}$" },
    { type: "array", uniqueItems: true, maxItems: 10 },
    { enum: [{ pattern: "(a+)+" }], default: { $ref: "x" } },
  ];
  for (const schema of good) assert.equal(unsafeSchema(schema), undefined);
});

Deno.test("checkable() leaves a slow pattern to the format beside it, and nothing else", () => {
  const pattern = "^(a+)+$";
  const email = { type: "string", format: "email", pattern };
  const schema = {
    properties: { a: email, format: { type: "string" }, pattern: { type: "string" } },
    anyOf: [email, { format: "date", pattern: "^[0-9-]+$" }],
    const: email,
  };
  assert.equal(unsafeSchema(schema), undefined);
  const kept = { type: "string", format: "email" };
  assert.deepEqual(checkable(schema), {
    ...schema,
    properties: { ...schema.properties, a: kept },
    anyOf: [kept, schema.anyOf[1]],
  });
  assert.match(unsafeSchema({ properties: { a: { pattern } } }) ?? "", /too long/);
});
