import assert from "node:assert/strict";
import fc from "fast-check";
import schemas from "../../tests/fixtures/tool_schemas.json" with { type: "json" };
import { parseExact } from "../core/exact_json.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { resolveRef } from "../core/schema_ref.ts";
import type { ToolDefinition } from "../protocol/tool.ts";
import { JsonSchema } from "../core/json_schema.ts";
import { LanguageServer } from "./_language_server.ts";
import { literalText, schemaType, toComment } from "./_schema_type.ts";
import { declarationsOf } from "./declarations.ts";

const GROUPS = { mark: "test", add: () => Promise.resolve(), remove: () => Promise.resolve() };

async function compiler() {
  const folder = await Deno.makeTempDir({ prefix: "pml-types-" });
  const server = new LanguageServer(folder, GROUPS);
  return {
    errors: async (text: string) =>
      (await server.check(`${text}\nexport {};`)).map(({ line, message }) =>
        `${text.split("\n")[line]}: ${message}`
      ),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

function tool(inputSchema: unknown, more: Partial<ToolDefinition> = {}): ToolDefinition {
  return { name: "t", inputSchema: inputSchema as JsonObject, ...more };
}

const is = (schema: unknown) => schemaType(schema).text;

Deno.test("typeOf() converts a schema to a type", () => {
  const cases: readonly [unknown, string][] = [
    [{ type: "string" }, "string"],
    [{ type: ["integer", "null"] }, "number | null"],
    [{ type: "string", nullable: true }, "string | null"],
    [{ enum: ['a"b', 1, null, true] }, '"a\\"b" | 1 | null | true'],
    [{ const: "x" }, '"x"'],
    [parseExact('{"enum":[725653563933458432,1.0,1e400]}'), "725653563933458432n | 1 | number"],
    [{ type: "array", items: { type: "string" } }, "string[]"],
    [{ type: "array", items: { enum: ["a", "b"] } }, 'Array<"a" | "b">'],
    [{ type: "array" }, "any[]"],
    [
      { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], minItems: 1 },
      "[string, number?, ...any[]]",
    ],
    [{ type: "array", items: [{ type: "string" }], additionalItems: false }, "[string?]"],
    [{ type: "object" }, "{ [key: string]: any }"],
    [{ type: "object", additionalProperties: false }, "{}"],
    [{ type: "object", additionalProperties: { type: "number" } }, "{ [key: string]: number }"],
    [
      { type: "object", properties: { "a-b": { type: "string" }, c: {} }, required: ["c", "d"] },
      '{ "a-b"?: string; c: any; d: any }',
    ],
    [
      { type: "object", properties: { a: { type: "string" } }, additionalProperties: true },
      "{ a?: string; [key: string]: any }",
    ],
    [{ anyOf: [{ type: "string" }, { type: "number" }] }, "string | number"],
    [
      { type: "object", properties: { a: {} }, anyOf: [{ required: ["a"] }] },
      "{ a?: any }",
    ],
    [
      {
        allOf: [{ type: "object", properties: { a: { type: "string" } } }, { $ref: "#/$defs/b" }],
        $defs: { b: { type: "object", required: ["b"] } },
      },
      "({ a?: string }) & ({ b: any })",
    ],
    [{ $ref: "#/definitions/x", definitions: { x: { type: "boolean" } } }, "boolean"],
    [{ $ref: "https://example.com/other" }, "any"],
    [true, "any"],
    [{ type: "file" }, "any"],
    [{ not: { type: "string" } }, "any"],
  ];
  for (const [schema, type] of cases) assert.equal(is(schema), type, JSON.stringify(schema));
});

Deno.test("typeOf() follows references to a limited depth and reports that it stopped", () => {
  const cycle = {
    $defs: { node: { type: "object", properties: { next: { $ref: "#/$defs/node" } } } },
    $ref: "#/$defs/node",
  };
  const { text, isCut } = schemaType(cycle);
  assert.match(text, /^\{ next\?: \{ next\?: .*any/);
  assert.ok(isCut && text.length < 200, text);
  const self = schemaType({ $ref: "#" });
  assert.deepEqual(self, { text: "any", isCut: true });
});

Deno.test("typeOf() limits the size of types for schemas that grow without end", () => {
  const names = Array.from({ length: 5_000 }, (_, at) => `property${at}`);
  const wide = { type: "object", properties: Object.fromEntries(names.map((name) => [name, {}])) };
  const twice = {
    $defs: {
      a: { type: "object", properties: { l: { $ref: "#/$defs/a" }, r: { $ref: "#/$defs/a" } } },
    },
    $ref: "#/$defs/a",
  };
  let deep: JsonObject = { type: "string" };
  for (let at = 0; at < 5_000; at++) deep = { type: "array", items: deep };
  const literals = { enum: Array.from({ length: 10_000 }, (_, at) => `value ${at}`) };
  for (const schema of [wide, twice, deep, literals]) {
    const { text, isCut } = schemaType(schema);
    assert.ok(isCut && text.length <= 8_000, `${text.length}`);
  }
});

Deno.test("names and texts of servers stay within their quotes and comments", async () => {
  await using deno = await compiler();
  const evil = [
    'x"; } evil(): { "',
    "*/ evil(); /*",
    "a\nb",
    "\u2028",
    "\u202e",
    "__proto__",
    "\ud800",
    "`${1}`",
    "\\",
  ];
  const properties = Object.fromEntries(
    evil.map((name) => [name, { enum: evil, description: `*/ ${name}` }]),
  );
  const text = declarationsOf([{
    name: "odd-server",
    tools: evil.map((name) => tool({ type: "object", properties }, { name, description: name })),
  }]);
  assert.deepEqual(await deno.errors(`interface Mcp {\n${text}\n}`), []);
  assert.doesNotMatch(text, /[\u2028\u202e]/);
  assert.equal(text.split("\n").filter((line) => /^\s*evil/.test(line)).length, 0);
  assert.equal(toComment("a */ b"), "/** a *\\/ b */ ");
  assert.equal(literalText("\u202e"), '"\\u{202e}"');
});

Deno.test("declarationsOf() uses the observed shape of a tool without an output schema", () => {
  const shape = { type: "object", properties: { a: { type: "string" } } };
  const tools = [
    tool({ type: "object" }),
    tool({ type: "object" }, {
      name: "u",
      outputSchema: { type: "object", properties: { b: { type: "number" } } },
    }),
  ];
  const text = declarationsOf([{ name: "s", tools }], () => shape);
  assert.match(text, /t\(args\?: .*Promise<\{ a\?: string; \[key: string\]: any \}>/);
  assert.match(text, /u\(args\?: .*Promise<\{ b\?: number \}>/);
  assert.match(declarationsOf([{ name: "s", tools }]), /t\(args\?: .*Promise<any>/);
});

/** Returns an arbitrary of values that a schema may allow. */
function valueOf(schema: unknown, root: unknown, depth = 0): fc.Arbitrary<Json> {
  const anything = fc.jsonValue({ maxDepth: 1 }) as fc.Arbitrary<Json>;
  if (!isObject(schema) || depth > 5) return anything;
  const inner = (each: unknown) => valueOf(each, root, depth + 1);
  if (typeof schema.$ref === "string") return inner(resolveRef(root, schema.$ref));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum as Json[]);
  if ("const" in schema) return fc.constant(schema.const as Json);
  const choices = [schema.anyOf, schema.oneOf].find(Array.isArray);
  if (choices && schema.properties === undefined) return fc.oneof(...choices.map(inner));
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "string") return fc.string();
  if (type === "integer") return fc.integer();
  if (type === "number") return fc.double({ noNaN: true, noDefaultInfinity: true });
  if (type === "boolean") return fc.boolean();
  if (type === "array") {
    if (Array.isArray(schema.prefixItems)) return fc.tuple(...schema.prefixItems.map(inner));
    return fc.array(inner(schema.items), { maxLength: 3 });
  }
  if (type !== "object") return anything;
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const known = Object.entries(isObject(schema.properties) ? schema.properties : {});
  const own = fc.record(Object.fromEntries(known.map(([name, each]) => [name, inner(each)])), {
    requiredKeys: known.map(([name]) => name).filter((name) => required.has(name)),
    noNullPrototype: true,
  });
  return fc.tuple(
    own,
    fc.dictionary(fc.stringMatching(/^more[a-z]{1,3}$/), anything, { maxKeys: 1 }),
  )
    .map(([one, more]) =>
      schema.additionalProperties === false ? one : { ...one, ...more }
    ) as fc.Arbitrary<Json>;
}

/** Returns the values that the schema allows. */
function allowed(schema: JsonObject, values: readonly Json[]): readonly Json[] {
  return values.filter((value) => {
    try {
      return new JsonSchema(schema).findProblem(value) === undefined;
    } catch {
      return false; // the schema refers to itself endlessly
    }
  });
}

async function assertWide(
  deno: { errors(text: string): Promise<readonly string[]> },
  all: readonly JsonObject[],
  seed: number,
) {
  let count = 0;
  const lines = await Promise.all(all.map(async (schema, at) => {
    const values = await allowed(
      schema,
      fc.sample(valueOf(schema, schema), { numRuns: 8, seed: seed + at }),
    );
    count += values.length;
    const type = `type T${at} = ${schemaType(schema, { isLenient: true }).text};`;
    return [
      type,
      ...values.map((value, n) =>
        `export const v${at}_${n}: T${at} = ${
          JSON.stringify(value).replaceAll('"__proto__":', '["__proto__"]:')
        };`
      ),
    ];
  }));
  assert.deepEqual(await deno.errors(lines.flat().join("\n")), []);
  return count;
}

Deno.test("every value that a real tool's schema allows has its type", async () => {
  await using deno = await compiler();
  const count = await assertWide(deno, schemas as unknown as JsonObject[], 1);
  assert.ok(count > 200, `${count} values`);
  const [wrong] = await deno.errors(`const v: ${is({ enum: ["a"] })} = "b"; v;`);
  assert.match(wrong ?? "", /not assignable/);
});

Deno.test("every value that any schema allows has its type", async () => {
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => {
    const inner = tie("schema");
    const members = fc.dictionary(fc.constantFrom("a", "b", "c-d", "$ref", "import"), inner, {
      maxKeys: 3,
    });
    const leaf = fc.constantFrom<JsonObject>(
      ...["string", "number", "integer", "boolean", "null"].map((type) => ({ type })),
      ...[
        {},
        { enum: ["a", 1, null] },
        { const: "x" },
        { type: ["string", "null"] },
        { $ref: "#" },
        { type: "string", nullable: true },
      ],
    );
    const object = fc.record({
      type: fc.constant("object"),
      properties: members,
      required: fc.subarray(["a", "b", "z"]),
      additionalProperties: fc.constantFrom<Json>(true, false, { type: "string" }),
    }, { requiredKeys: ["type"] });
    const array = fc.oneof(
      inner.map((items) => ({ type: "array", items })),
      fc.tuple(inner, inner).map((prefixItems) => ({ type: "array", prefixItems, minItems: 1 })),
    );
    const choice = fc.tuple(
      fc.constantFrom("anyOf", "oneOf"),
      fc.array(inner, { minLength: 1, maxLength: 3 }),
    ).map(([key, list]) => ({ [key]: list }));
    const all = fc.tuple(object, inner).map(([one, other]) => ({ ...one, allOf: [other] }));
    return {
      schema: fc.oneof({ maxDepth: 4 }, leaf, object, array, choice, all) as fc.Arbitrary<
        JsonObject
      >,
    };
  });
  await using deno = await compiler();
  const seed = Number(Deno.env.get("FC_SEED") ?? Date.now() % 1_000_000);
  const all = fc.sample(schema, { numRuns: 150, seed });
  const count = await assertWide(deno, all, seed).catch((error) => {
    throw new Error(`with FC_SEED=${seed}: ${error.message}`);
  });
  assert.ok(count > 100, `${count} values`);
});
