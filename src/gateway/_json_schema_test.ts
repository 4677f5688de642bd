import assert from "node:assert/strict";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/server/validators/cf-worker";
import fc from "fast-check";
import { assertQuick } from "../../tests/kit/wait.ts";
import type { JsonObject } from "../core/json.ts";
import { JsonSchema } from "./_json_schema.ts";

/** The validators of the SDK, which do not agree on everything. */
const SDK = [new CfWorkerJsonSchemaValidator(), new AjvJsonSchemaValidator()];
const names = fc.constantFrom("a", "b", "ab", "enum", "default", "$ref");
const plain = fc.constantFrom(
  null,
  true,
  false,
  0,
  1,
  1.5,
  -3,
  "",
  "a",
  "ab",
  "b",
  "12",
  "😀",
  "😀a",
);

/** Schemas that say what both understand, of a few keywords each. */
const { schema } = fc.letrec<{ schema: JsonObject; any: unknown }>((tie) => {
  const any = tie("any");
  const some = fc.array(any, { minLength: 1, maxLength: 3 });
  const byName = fc.dictionary(names, any, { maxKeys: 3, noNullPrototype: true });
  const byPattern = fc.dictionary(fc.constantFrom("^a", "b$", "(a|b)+$"), any, {
    maxKeys: 2,
    noNullPrototype: true,
  });
  const count = fc.nat(3);
  const list = fc.uniqueArray(names, { maxLength: 2 });
  const type = fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object");
  const values = fc.oneof(plain, fc.constant([1]), fc.constant({ a: 1, b: [] }));
  const flat = {
    type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
    const: values,
    enum: fc.uniqueArray(values, { minLength: 1, selector: (one) => JSON.stringify(one) }),
    uniqueItems: fc.boolean(),
    required: list,
    dependentRequired: fc.dictionary(names, list, { maxKeys: 2, noNullPrototype: true }),
    ...{ minItems: count, maxItems: count, minProperties: count, maxProperties: count },
    ...{ minLength: count, maxLength: count, minimum: count, maximum: count },
    ...{ exclusiveMinimum: count, exclusiveMaximum: count },
    multipleOf: fc.constantFrom(0.5, 1, 2, 3),
    pattern: fc.constantFrom("^a", "b", "^[ab]+$", "(a|b){2}"),
    format: fc.constantFrom("date", "email", "uuid"),
    $ref: fc.constantFrom("#/$defs/a", "#/$defs/b"),
  };
  const deep = {
    ...{ not: any, if: any, then: any, else: any, allOf: some, anyOf: some, oneOf: some },
    ...{ prefixItems: some, items: any, contains: any, unevaluatedItems: any },
    ...{ properties: byName, patternProperties: byPattern, additionalProperties: any },
    ...{ propertyNames: any, unevaluatedProperties: any, dependentSchemas: byName },
  };
  const said = (all: Readonly<Record<string, fc.Arbitrary<unknown>>>) =>
    fc.oneof(...Object.entries(all).map(([key, made]) => made.map((one) => ({ [key]: one }))));
  const merged = (list: readonly object[]) => Object.assign({}, ...list) as JsonObject;
  return {
    any: fc.oneof({ maxDepth: 3 }, fc.boolean(), said(flat), tie("schema")),
    schema: fc.oneof(
      { maxDepth: 3 },
      fc.array(said(flat), { maxLength: 3 }).map(merged),
      fc.array(fc.oneof(said(deep), said(flat)), { maxLength: 4 }).map(merged),
    ),
  };
});
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    plain,
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(names, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

Deno.test("JsonSchema says of ordinary schemas and values what the SDK's validator says", async () => {
  const seen = { fits: 0, wrong: 0, unchecked: 0 };
  // No circles: they have no end in the SDK's.
  const lower = (made: unknown, [from, to]: readonly [string, string]) =>
    JSON.parse(JSON.stringify(made).replaceAll(`"#/$defs/${from}"`, `"#/$defs/${to}"`));
  const root = fc.tuple(schema, schema, schema).map(([one, a, b]) => ({
    ...one,
    $defs: {
      a: lower(a, ["a", "b"]),
      b: lower(lower(b, ["a", "c"]), ["b", "c"]),
      c: { type: ["string", "object"] },
    },
  }));
  await fc.assert(
    fc.asyncProperty(
      root,
      fc.array(value, { minLength: 4, maxLength: 8 }),
      async (made, values) => {
        const text = JSON.stringify(made);
        const ours = await JsonSchema.read(JSON.parse(text));
        const theirs = SDK.map((sdk) => sdk.getValidator(JSON.parse(text)));
        assert.equal(ours.unchecked.size, 0, text);
        for (const one of values) {
          const { kind } = ours.check(one);
          seen[kind]++;
          const said = theirs.map((validate) => saidBy(validate, one));
          assert.ok(
            said.includes(kind) || !said.some(Boolean),
            `${text} ${JSON.stringify(one)}: ${kind}`,
          );
        }
      },
    ),
    { numRuns: 2_000, seed: 7 },
  );
  assert.ok(seen.fits > 1_000 && seen.wrong > 1_000, JSON.stringify(seen));
});

/** One of the SDK's has code for some schemas that throws: then it says nothing. */
function saidBy(
  validate: (value: unknown) => { valid: boolean },
  value: unknown,
): string | undefined {
  try {
    return validate(value).valid ? "fits" : "wrong";
  } catch {
    return undefined;
  }
}

Deno.test("JsonSchema reads names of properties as names, whatever keyword they look like", async () => {
  for (const name of ["enum", "const", "default", "examples", "pattern", "$ref", "required"]) {
    const schema = { properties: { [name]: { properties: { [name]: { type: "integer" } } } } };
    const read = await JsonSchema.read(schema);
    assert.equal(read.check({ [name]: { [name]: 1 } }).kind, "fits", name);
    assert.equal(read.check({ [name]: { [name]: "1" } }).kind, "wrong", name);
  }
});

Deno.test("JsonSchema leaves out what it cannot check, and says no more than it knows", async () => {
  const unknown = { pattern: "(?=a)" };
  const table: readonly (readonly [JsonObject, unknown, string])[] = [
    [unknown, "a", "unchecked"],
    [unknown, 1, "fits"],
    [{ not: unknown }, "a", "unchecked"],
    [{ not: { anyOf: [unknown, { type: "string" }] } }, "a", "wrong"],
    [{ anyOf: [unknown, { const: "a" }] }, "a", "fits"],
    [{ oneOf: [unknown, { const: "a" }] }, "a", "unchecked"],
    [{ oneOf: [unknown, { const: "a" }, { const: "a" }, true] }, "a", "wrong"],
    [{ allOf: [unknown, { const: "b" }] }, "a", "wrong"],
    [{ if: unknown, then: { minLength: 1 }, else: { maxLength: 1 } }, "a", "fits"],
    [{ if: unknown, then: { minLength: 2 }, else: { maxLength: 1 } }, "a", "unchecked"],
    [{ if: unknown, then: { minLength: 2 }, else: { maxLength: 0 } }, "a", "wrong"],
    [{ contains: unknown }, ["a"], "unchecked"],
    [{ contains: unknown, maxContains: 0, minContains: 0 }, [1, "a"], "wrong"],
    [{ patternProperties: { "(?=a)": { type: "string" } } }, { a: "x" }, "fits"],
    [{ patternProperties: { "(?=a)": { type: "string" } } }, { a: 1 }, "unchecked"],
    [{ patternProperties: { "(?=a)": {} }, additionalProperties: false }, { a: 1 }, "unchecked"],
    [{ $ref: "https://example.com/x" }, 1, "unchecked"],
    [{ $ref: "#/$defs/none" }, 1, "unchecked"],
    [{ pattern: "[\\w-.]" }, "a", "unchecked"],
    [{ pattern: "(?=a)", format: "email" }, "a@b.c", "fits"],
  ];
  for (const [schema, value, kind] of table) {
    const checked = (await JsonSchema.read(schema)).check(value);
    assert.equal(checked.kind, kind, `${JSON.stringify(schema)} ${JSON.stringify(checked)}`);
  }
});

Deno.test("JsonSchema follows references within the document, also to itself and to names", async () => {
  const tree = {
    $defs: {
      t: { $anchor: "T", required: ["n"], properties: { kids: { items: { $ref: "#T" } } } },
    },
    $ref: "#/$defs/t",
  };
  const read = await JsonSchema.read(tree);
  assert.equal(read.check({ n: 1, kids: [{ n: 2, kids: [{ n: 3 }] }] }).kind, "fits");
  const checked = read.check({ n: 1, kids: [{ n: 2, kids: [{}] }] });
  assert.deepEqual(checked, {
    kind: "wrong",
    why: 'kids.0.kids.0: there is no required property "n"',
  });
  const old = { $schema: "http://json-schema.org/draft-04/schema#", minimum: 1 };
  const exclusive = await JsonSchema.read({ ...old, exclusiveMinimum: true });
  assert.equal(exclusive.check(1).kind, "wrong");
  assert.equal((await JsonSchema.read(old)).check(1).kind, "fits");
  const dynamic = {
    $dynamicAnchor: "n",
    properties: { a: { $dynamicRef: "#n" } },
    maxProperties: 1,
  };
  assert.equal((await JsonSchema.read(dynamic)).check({ a: { a: {}, b: {} } }).kind, "wrong");
});

Deno.test("JsonSchema is done in time with whatever schema and value there are", async () => {
  const many = (length: number, make: (at: number) => unknown) =>
    Array.from({ length }, (_, at) => make(at));
  const defs = Object.fromEntries(many(60, (at) => {
    const below = { $ref: `#/$defs/d${at as number - 1}` };
    return [
      `d${at}`,
      at === 0 ? { minimum: 1 } : { if: below, then: below, oneOf: [below, below] },
    ];
  }) as [string, unknown][]);
  const table: readonly (readonly [unknown, unknown])[] = [
    [{ pattern: "(a|a)".repeat(25) + "$" }, "a".repeat(28) + "!"],
    [{ pattern: "a{0,200}".repeat(8) + "$" }, "a".repeat(1_000) + "!"],
    [{ items: { pattern: "(x+x+)+y" } }, many(2_000, () => "x".repeat(100))],
    [{ items: { enum: many(20_000, (at) => `v${at}`) } }, many(20_000, (at) => `v${at}!`)],
    [{ items: { enum: many(20_000, (at) => `v${at}`) } }, many(20_000, (at) => `v${at}`)],
    [{ items: { const: many(2_000, (at) => at) } }, many(200, () => many(2_000, (at) => at))],
    [{ uniqueItems: true }, many(200_000, (at) => at)],
    [{ uniqueItems: true }, many(300, (at) => `${"x".repeat(50_000)}${at}`)],
    [{ $defs: defs, $ref: "#/$defs/d59" }, 1],
    [{ $ref: "#" }, 1],
    [{ items: { anyOf: many(1_500, (at) => ({ const: at })) } }, many(100_000, () => 1_499)],
    [{ required: many(40_000, (at) => `r${at}`) }, {}],
    [{ items: { required: many(40_000, (at) => `r${at}`) } }, many(5_000, () => ({}))],
    [{ items: { format: "url" } }, many(100, () => `http://${"a".repeat(60_000)}`)],
  ];
  for (const [schema, value] of table) {
    const read = await JsonSchema.read(JSON.parse(JSON.stringify(schema)));
    await assertQuick(50, () => read.check(value));
  }
});

Deno.test("JsonSchema reads a hostile schema in a moment, or not at all", async () => {
  const nested = (make: (inner: unknown) => object, depth: number) => {
    let inner: unknown = { allOf: Array.from({ length: 30_000 }, () => true) };
    for (let at = 0; at < depth; at++) inner = make(inner);
    return inner;
  };
  const far = Array.from({ length: 150 }, () => ({ $ref: `#/x${"/%".repeat(3_000)}` }));
  const names = Array.from({ length: 45_000 }, (_, at) => String((at + 1) * 32_768));
  const schemas: readonly (readonly [JsonObject, isRead: boolean])[] = [
    [
      { $ref: "#/x", x: nested((not) => ({ $id: "a", $ref: "#b", not }), 1_000) } as JsonObject,
      false,
    ],
    [{ allOf: far, x: nested((inner) => ({ "%": inner }), 3_000) } as JsonObject, false],
    [{ properties: Object.fromEntries(names.map((name) => [name, true])) }, true],
  ];
  for (const [each, isRead] of schemas) {
    const waits: number[] = [];
    for (let time = 0; time < 3; time++) {
      const since = performance.now();
      const read = await JsonSchema.read(each).then(() => true, () => false);
      waits.push(performance.now() - since);
      assert.equal(read, isRead);
    }
    assert.ok(Math.min(...waits) < 1_500, `${JSON.stringify(each).slice(0, 80)}: ${waits} ms`);
  }
});

Deno.test("JsonSchema shows the beginning of long names, wherever they stand", async () => {
  const long = "x".repeat(30_000_000);
  const closed = { additionalProperties: false };
  const read = await JsonSchema.read({ properties: { a: { allOf: Array(10).fill(closed) } } });
  const checked = read.check({ a: { [long]: 1 } });
  assert.ok(checked.kind === "wrong" && checked.why.length < 600);
  assert.match(checked.why, /^a: "x{200}" is unknown/);
});
