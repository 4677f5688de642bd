import assert from "node:assert/strict";
import fc from "fast-check";
import { parseExact } from "../core/exact_json.ts";
import type { JsonObject } from "../core/json.ts";
import { shortSignatureOf, signatureOf } from "./signature.ts";

function of(inputSchema: JsonObject, outputSchema?: JsonObject): string {
  return signatureOf({ name: "t", inputSchema, ...(outputSchema && { outputSchema }) });
}

function typed(schema: JsonObject, more: JsonObject = {}): string {
  const text = of({ properties: { p: schema }, required: ["p"], ...more });
  return text === "t(p)" ? "string" : text.slice("t(p: ".length, -1);
}

Deno.test("signatureOf() leaves out the type of texts, and null where nothing may be given", () => {
  const nullable = { anyOf: [{ type: "string" }, { type: "null" }] };
  const properties = { a: { type: "string" }, b: nullable, c: { type: ["integer", "null"] } };
  assert.equal(of({ properties }), "t(a?, b?, c?: number)");
  assert.equal(of({ properties, required: ["a", "b"] }), "t(a, b: string | null, c?: number)");
  const people = { type: "array", items: { type: "object", properties, required: ["a"] } };
  assert.equal(typed(people), "{ a, b?, c?: number }[]");
});

Deno.test("signatureOf() writes parameters, the required first, and the result", () => {
  const properties = { head: { type: "integer" }, path: { type: "string" } };
  assert.equal(of({ properties, required: ["path"] }), "t(path, head?: number)");
  assert.equal(of({}, { type: "string" }), "t(): string");
  assert.equal(
    of({}, { type: "object", properties: { ok: { type: "boolean" } } }),
    "t(): { ok?: boolean }",
  );
});

Deno.test("shortSignatureOf() writes the required parameters only", () => {
  const items = { type: "object", properties: { a: { type: "string" } } };
  const properties = {
    head: { type: "integer" },
    path: { type: "string" },
    edits: { type: "array", items },
  };
  const short = (schema: JsonObject) => shortSignatureOf({ name: "t", inputSchema: schema });
  assert.equal(short({ properties, required: ["path", "edits"] }), "t(path, edits: object[], …)");
  assert.equal(short({ properties: { path: {} }, required: ["path"] }), "t(path: unknown)");
  assert.equal(short({ properties }), "t(…)");
  assert.equal(short({}), "t()");
  const long = { name: "t", inputSchema: { properties, required: ["path"] } };
  assert.equal(shortSignatureOf(long, 5), "t(pa…");
});

Deno.test("signatureOf() writes the types of JSON Schema as TypeScript does", () => {
  const cases: readonly (readonly [JsonObject, string])[] = [
    [{ type: "array", items: { type: "string" } }, "string[]"],
    [{ type: "array", items: { enum: ["a", 1, null] } }, '("a" | 1 | null)[]'],
    [{ type: "array" }, "unknown[]"],
    [{ const: "x" }, '"x"'],
    [parseExact('{"enum":[725653563933458432,1.0]}'), "725653563933458432 | 1.0"],
    [{ const: "a\u202e" }, String.raw`"a\\u{202e}"`],
    [{ type: ["string", "null"] }, "string | null"],
    [{ anyOf: [{ type: "string" }, { type: "number" }, { type: "integer" }] }, "string | number"],
    [{ allOf: [{ type: "boolean" }] }, "boolean"],
    [{ type: "object" }, "object"],
    [{ type: "object", properties: { a: { type: "null" } } }, "{ a?: null }"],
    [{ type: "toString" }, "unknown"],
    [{}, "unknown"],
    [{ enum: [] }, "never"],
  ];
  for (const [schema, wanted] of cases) assert.equal(typed(schema), wanted);
});

Deno.test("signatureOf() follows references inside the schema, and stops in a cycle", () => {
  const $defs = {
    "a/b": { type: "string" },
    node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } },
    loop: { $ref: "#/$defs/loop" },
  };
  assert.equal(typed({ $ref: "#/$defs/a~1b" }, { $defs }), "string");
  assert.equal(typed({ $ref: "#/$defs/node" }, { $defs }), "{ next?: object }");
  assert.equal(typed({ $ref: "#/$defs/loop" }, { $defs }), "unknown");
  assert.equal(typed({ $ref: "#/constructor/name" }, { $defs }), "unknown");
  assert.equal(typed({ $ref: "#/__proto__" }, { $defs }), "unknown");
  assert.equal(typed({ $ref: "https://example.com/x" }), "unknown");
});

Deno.test("signatureOf() quotes, escapes and cuts hostile names", () => {
  const text = of({ properties: { 'a": evil()\n\u202e': {}, ["x".repeat(1e5)]: {} } });
  assert.equal(text.split(",")[0], String.raw`t("a\": evil()\\u{a}\\u{202e}"?: unknown`);
  assert.ok(text.length <= 300);
  assert.match(signatureOf({ name: "a\u001b[0m", inputSchema: {} }), /^a\\u\{1b\}/);
});

Deno.test("signatureOf() does not cut the longest tool name", () => {
  const name = "n".repeat(128);
  assert.equal(signatureOf({ name, inputSchema: {} }), `${name}()`);
});

Deno.test("signatureOf() limits the depth that it shows and the schemas that it reads", () => {
  const array = (items: JsonObject): JsonObject => ({ type: "array", items });
  const nested = array(array(array(array(array({ type: "string" })))));
  assert.equal(typed(nested), "unknown[][][][]");
  const object = (a: JsonObject): JsonObject => ({ type: "object", properties: { a } });
  assert.equal(typed(object(object(object({})))), "{ a?: { a?: { a?: unknown } } }");
  let read = 0;
  let bomb: JsonObject = {};
  for (let i = 0; i < 5; i++) {
    const inner = bomb;
    const properties = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`p${n}`, inner]));
    bomb = {
      get type() {
        read += 1;
        return "object";
      },
      properties,
    };
  }
  of(bomb);
  assert.ok(read < 1_000);
});

Deno.test("signatureOf() returns a short text quickly for any schema", () => {
  const wide = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`p${i}`, {}]));
  const $defs = { bomb: { properties: {}, anyOf: Array(50).fill({ $ref: "#/$defs/bomb" }) } };
  const hostile: readonly JsonObject[] = [
    { properties: { p: { enum: Array.from({ length: 1e5 }, (_, i) => `${i}`) } } },
    { properties: wide },
    { properties: { p: { $ref: "#/$defs/bomb" } }, $defs },
    { properties: { p: { enum: ["x".repeat(1e6)] } } },
    { properties: { p: { type: Array(1e5).fill("string") } } },
  ];
  for (const schema of hostile) assert.ok(of(schema).length <= 300);
  assert.match(of({ properties: wide }), /…/);
});

Deno.test("signatureOf() returns one bounded line of visible characters for any JSON", () => {
  fc.assert(fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
    // A server may send any JSON as a schema.
    const text = of({ properties: value } as JsonObject, value as JsonObject);
    assert.ok(text.length <= 300);
    assert.doesNotMatch(text, /[\p{Cc}\p{Cf}]/u);
  }));
});
