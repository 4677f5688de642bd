import assert from "node:assert/strict";
import type { JsonObject } from "./json.ts";
import { JsonSchema } from "./json_schema.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

const DRAFT_04 = "http://json-schema.org/draft-04/schema#";
const DRAFT_07 = "http://json-schema.org/draft-07/schema#";

Deno.test("JsonSchema names the place and the reason", () => {
  const table: readonly (readonly [JsonObject, unknown, boolean])[] = [
    [{ type: "string" }, "x", true],
    [{ type: ["string", "null"] }, 1, false],
    [{ type: "integer" }, 1.5, false],
    [{ enum: ["a", 1] }, "b", false],
    [{ pattern: "^a" }, "b", false],
    [{ format: "date-time" }, "10:00", false],
    [{ minLength: 2 }, "b", false],
    [
      { properties: { a: { items: { type: "null" } } } },
      { a: [null, 1] },
      false,
    ],
    [{ properties: { "a/b": { const: 1 } } }, { "a/b": 2 }, false],
    [{ properties: { a: false } }, { a: 1 }, false],
    [{ additionalProperties: false }, { b: 1 }, false],
    [
      { additionalProperties: { type: "null" } },
      { b: 1 },
      false,
    ],
    [{ unevaluatedProperties: false }, { b: 1 }, false],
    [
      { anyOf: [{ type: "string" }, { type: "null" }] },
      1,
      false,
    ],
    [{ $ref: "#/$defs/a", $defs: { a: { required: ["b"] } } }, {}, false],
    [{ $schema: DRAFT_07, items: [{ type: "string" }], additionalItems: false }, ["a"], true],
    [{ $schema: DRAFT_04, minimum: 1, exclusiveMinimum: true }, 1, false],
    [{ required: ["__proto__"] }, {}, false],
    [{}, undefined, false],
  ];
  const reasons: string[] = [];
  for (const [schema, value, isValid] of table) {
    const wrong = new JsonSchema(schema).findProblem(value);
    assert.equal(wrong === undefined, isValid, JSON.stringify([schema, value]));
    if (wrong !== undefined) reasons.push(wrong);
  }
  assertGolden("call/arguments that do not fit a schema", reasons.join("\n"));
});

Deno.test("JsonSchema names the first problems of many", () => {
  const schema = new JsonSchema({ items: { type: "null" } });
  assert.match(
    schema.findProblem(Array.from({ length: 40 }, () => 1)) ?? "",
    /; and 35 more problems$/,
  );
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
  new JsonSchema(schema).findProblem({ a: {} });
  assert.deepEqual(schema, { type: "object", properties: { a: { $ref: "#" } } });
});

Deno.test("JsonSchema explains a pattern by the description of its text", () => {
  const code = { type: "string", pattern: "^[A-Z]{3}$", description: "A currency, such as EUR" };
  const schema = new JsonSchema({
    properties: { code, list: { items: { $ref: "#/$defs/code" } } },
    $defs: { code },
  });
  assert.match(
    schema.findProblem({ code: "euro" }) ?? "",
    /^code: .*pattern \(A currency, .*EUR\)$/,
  );
  assert.match(schema.findProblem({ list: ["euro"] }) ?? "", /^list\.0: .*pattern/);
});
