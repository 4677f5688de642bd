import assert from "node:assert/strict";
import fc from "fast-check";
import type { Json, JsonObject } from "../core/json.ts";
import { JsonSchema } from "../core/json_schema.ts";
import { exampleOf, findWrongArguments } from "./_example.ts";

const matches = (text: string, pattern: string) => new RegExp(pattern, "u").test(text);
const NEVER = { matches: () => false };

Deno.test("exampleOf() returns values that the gateway's validator accepts", async () => {
  const table: readonly (readonly [JsonObject, Json])[] = [
    [{ type: "object", required: ["a"], properties: { a: { type: "string" } } }, { a: "x" }],
    [{ type: "string", minLength: 5 }, "xxxxx"],
    [{ type: "string", minLength: 2, maxLength: 3, pattern: "^[0-9]+$" }, "11"],
    [{ type: "string", maxLength: 0 }, ""],
    [{ type: "string", pattern: "^[a-z]/[a-z]$" }, "x/y"],
    [{ type: "string", format: "date-time" }, "2026-01-31T12:00:00Z"],
    [{ type: "integer", minimum: 3 }, 3],
    [{ type: "integer", exclusiveMinimum: 3, multipleOf: 4 }, 8],
    [{ type: "number", exclusiveMaximum: -1 }, -2],
    [{ type: "number", minimum: 0.2, maximum: 0.4 }, 0.2],
    [{ type: ["null", "string"] }, null],
    [{ type: "array", minItems: 2, items: { type: "boolean" } }, [true, true]],
    [{ type: "array", prefixItems: [{ const: 1 }, { enum: ["b"] }], minItems: 2 }, [1, "b"]],
    [{ default: 5 }, 5],
    [{ examples: [{ a: 1 }], type: "object" }, { a: 1 }],
    [{ anyOf: [{ type: "integer" }, { type: "string" }] }, 0],
    [{ allOf: [{ required: ["a"] }, { properties: { a: { const: 1 } } }] }, { a: 1 }],
    [
      {
        $ref: "#/$defs/a~1b",
        $defs: { "a/b": { required: ["c"], properties: { c: { const: 2 } } } },
      },
      { c: 2 },
    ],
  ];
  for (const [schema, example] of table) {
    const read = new JsonSchema(schema);
    assert.deepEqual(await exampleOf(schema, { matches }), example);
    assert.equal(read.findProblem(example), undefined, JSON.stringify(schema));
  }
});

Deno.test("exampleOf() and findWrongArguments() agree with the validator on generated schemas", async () => {
  const leaf: fc.Arbitrary<JsonObject> = fc.oneof(
    fc.record({ type: fc.constant("string"), minLength: fc.nat(9) }),
    fc.record({ type: fc.constant("integer"), minimum: fc.integer({ min: -99, max: 99 }) }),
    fc.record({ type: fc.constantFrom("boolean", "null", "number", "array", "object") }),
    fc.record({ enum: fc.array(fc.integer(), { minLength: 1, maxLength: 3 }) }),
  );
  const properties = fc.dictionary(fc.constantFrom("a", "b", "c"), leaf, { noNullPrototype: true });
  const made = fc.record({ properties, closed: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(made, async ({ properties, closed }) => {
      const required = Object.keys(properties).slice(0, 2);
      const schema: JsonObject = {
        type: "object",
        properties,
        required,
        additionalProperties: !closed,
      };
      const read = new JsonSchema(schema);
      const example = await exampleOf(schema, { matches });
      const fits = (value: unknown) => read.findProblem(value) === undefined;
      assert.ok(fits(example));
      const { wrong, open } = await findWrongArguments(schema, { example, fits });
      for (const value of wrong) assert.ok(!fits(value), JSON.stringify([schema, value]));
      assert.deepEqual(open, []);
      const all = required.length + Object.keys(properties).length + (closed ? 1 : 0);
      assert.equal(wrong.length, all);
    }),
    { seed: 7 },
  );
});

Deno.test("exampleOf() returns a value for any schema", () => {
  fc.assert(
    fc.property(fc.object(), (value) => {
      const schema = JSON.parse(JSON.stringify(value));
      assert.ok(exampleOf(schema, NEVER) !== undefined);
      findWrongArguments(schema, { example: {}, fits: () => true });
    }),
    { seed: 7 },
  );
  const strange: readonly JsonObject[] = [
    { pattern: "(" },
    { minItems: 1e9, type: "array" },
    { minLength: 1e12 },
    { $ref: "#" },
    { $ref: "#/%" },
    { $ref: "x", const: 1 },
    { allOf: [{ $ref: "#" }, { $ref: "#" }] },
    { required: ["a"], properties: { a: { $ref: "#" } } },
  ];
  for (const odd of strange) assert.ok(exampleOf(odd, NEVER) !== undefined);
});
