import assert from "node:assert/strict";
import type { JsonObject } from "./json.ts";
import { JsonSchema } from "./json_schema.ts";

const DRAFT_04 = "http://json-schema.org/draft-04/schema#";
const DRAFT_07 = "http://json-schema.org/draft-07/schema#";

Deno.test("JsonSchema names the place and the reason", () => {
  const table: readonly (readonly [JsonObject, unknown, string | undefined])[] = [
    [{ type: "string" }, "x", undefined],
    [{ type: ["string", "null"] }, 1, "the value is of type number, not string, null"],
    [{ type: "integer" }, 1.5, "the value is of type number, not integer"],
    [{ enum: ["a", 1] }, "b", 'the value does not match any of ["a",1]'],
    [{ pattern: "^a" }, "b", "the value does not match pattern"],
    [{ format: "date-time" }, "10:00", 'the value does not match format "date-time"'],
    [{ minLength: 2 }, "b", "the value is too short (1 < 2)"],
    [
      { properties: { a: { items: { type: "null" } } } },
      { a: [null, 1] },
      "a.1: the value is of type number, not null",
    ],
    [{ properties: { "a/b": { const: 1 } } }, { "a/b": 2 }, "a/b: the value does not match 1"],
    [{ properties: { a: false } }, { a: 1 }, "a: no value is allowed"],
    [{ additionalProperties: false }, { b: 1 }, '"b" is unknown'],
    [
      { additionalProperties: { type: "null" } },
      { b: 1 },
      "b: the value is of type number, not null",
    ],
    [{ unevaluatedProperties: false }, { b: 1 }, '"b" is unknown'],
    [
      { anyOf: [{ type: "string" }, { type: "null" }] },
      1,
      "the value does not match any subschemas; the value is of type number, not string; the value is of type number, not null",
    ],
    [{ $ref: "#/$defs/a", $defs: { a: { required: ["b"] } } }, {}, "Missing argument: b"],
    [{ $schema: DRAFT_07, items: [{ type: "string" }], additionalItems: false }, ["a"], undefined],
    [{ $schema: DRAFT_04, minimum: 1, exclusiveMinimum: true }, 1, "1 is less than or equal to  1"],
    [{ required: ["__proto__"] }, {}, "Missing argument: __proto__"],
    [{}, undefined, "there is no value"],
  ];
  for (const [schema, value, wrong] of table) {
    assert.equal(new JsonSchema(schema).wrong(value), wrong, JSON.stringify([schema, value]));
  }
});

Deno.test("JsonSchema names the first problems of many", () => {
  const schema = new JsonSchema({ items: { type: "null" } });
  assert.match(schema.wrong(Array.from({ length: 40 }, () => 1)) ?? "", /; and 35 more problems$/);
});

Deno.test("JsonSchema refuses a schema that it cannot use", () => {
  const table: readonly (readonly [JsonObject, RegExp])[] = [
    [{ properties: { a: { $ref: "https://example.com/x" } } }, /leads to no schema/],
    [{ $ref: "#/nowhere" }, /leads to no schema/],
    [{ properties: { a: { pattern: "(?i)a" } } }, /Invalid regular expression/],
    [{ patternProperties: { "[": {} } }, /Invalid regular expression/],
    [{ $schema: "https://example.com/mine" }, /is not supported/],
  ];
  for (const [schema, why] of table) {
    assert.throws(() => new JsonSchema(schema), why, JSON.stringify(schema));
  }
});

Deno.test("JsonSchema does not change the schema that it is given", () => {
  const schema = { type: "object", properties: { a: { $ref: "#" } } };
  new JsonSchema(schema).wrong({ a: {} });
  assert.deepEqual(schema, { type: "object", properties: { a: { $ref: "#" } } });
});
