import assert from "node:assert/strict";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import fc from "fast-check";
import schema from "../../config/module-meta.schema.json" with { type: "json" };
import { JsonSchema } from "../core/json_schema.ts";
import { parseModuleMeta } from "./tool.ts";

const accepts = new AjvJsonSchemaValidator().getValidator<unknown>(schema);

function parses(value: unknown): boolean {
  try {
    parseModuleMeta(value, "x.ts");
    return true;
  } catch {
    return false;
  }
}

/** Generates mostly valid values, and sometimes invalid ones, at every place. */
function or(good: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 12, arbitrary: good }, { weight: 1, arbitrary: fc.jsonValue() });
}

function some(keys: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<unknown> {
  return or(fc.record({ ...keys, later: fc.jsonValue() }, { requiredKeys: [] }));
}

const texts = or(fc.array(or(fc.string()), { maxLength: 2 }));
const permissions = some({ read: texts, write: texts, net: texts, run: texts, env: texts })
  .map((value) => {
    // Unknown keys are refused only at this place, so they are generated rarely.
    const { later, ...rest } = Object(value);
    return later === null || Array.isArray(value) ? value : rest;
  });
const names = fc.constantFrom(
  ...["weather", "a", "a.b-c_d", "0", "a".repeat(64), "a".repeat(65), "pml", "search", "execute_x"],
  ...["a__b", "a..b", "-a", "a-", "A", "", "a b", "a\n", "ä"],
);
const toolNames = fc.constantFrom(
  ...[
    "read_file",
    "a.b/c-d",
    "A",
    "constructor",
    "x".repeat(128),
    "x".repeat(129),
    "",
    "a b",
    "a\n",
  ],
);
const inputs = or(fc.record({ type: fc.constantFrom("object", "string", null) }, {
  requiredKeys: [],
}));
const object = or(fc.constant({}));
const tool = some({
  title: or(fc.string()),
  description: or(fc.string()),
  inputSchema: inputs,
  outputSchema: object,
  errors: some({ NO: or(fc.oneof(fc.string(), fc.constant({}))) }),
  visibility: or(fc.constantFrom("internal", "external")),
  annotations: object,
  permissions,
  _meta: object,
});
const meta = fc.record({
  name: or(fc.oneof({ weight: 3, arbitrary: fc.constant("weather") }, names)),
  version: or(fc.string()),
  description: or(fc.string()),
  permissions,
  tools: or(fc.dictionary(
    fc.oneof({ weight: 5, arbitrary: fc.constant("look") }, toolNames),
    tool,
    { maxKeys: 2, noNullPrototype: true },
  )),
  later: fc.jsonValue(),
}, { requiredKeys: ["tools"] });

Deno.test("module-meta.schema.json accepts exactly the values that parseModuleMeta() accepts", () => {
  const seen = { good: 0, bad: 0 };
  fc.assert(
    fc.property(fc.oneof({ weight: 20, arbitrary: meta }, fc.jsonValue()), (value) => {
      const plain = JSON.parse(JSON.stringify(value));
      const isGood = parses(plain);
      seen[isGood ? "good" : "bad"]++;
      assert.equal(accepts(plain).valid, isGood, JSON.stringify(plain));
    }),
    { numRuns: 3_000 },
  );
  assert.ok(seen.good > 300 && seen.bad > 300, JSON.stringify(seen));
});

Deno.test("parseModuleMeta() takes a missing name from the file", () => {
  const named = (path: string) => parseModuleMeta({ tools: {} }, path).name;
  assert.equal(named("/work/mcp/My weather.v2.ts"), "my-weather.v2");
  assert.equal(named("C:\\mcp\\weather.ts"), "weather");
  assert.throws(() => named("/work/pml.ts"), { code: "CONFIG_INVALID" });
});

Deno.test("module-meta.schema.json is a schema that PML can use", () => {
  const read = new JsonSchema(schema);
  assert.equal(read.findProblem({ name: "a", tools: { b: {} } }), undefined);
  assert.match(
    read.findProblem({ name: "a", tools: { b: { permissions: { ffi: [] } } } }) ?? "",
    /"ffi" is unknown/,
  );
});

Deno.test("parseModuleMeta() refuses members of a tool that clients cannot read", () => {
  const table: readonly (readonly [object, RegExp])[] = [
    [{ title: 5 }, /tools\.a\.title is 5, wanted a string/],
    [{ annotations: [] }, /tools\.a\.annotations is \[\], wanted an object/],
    [{ _meta: "x" }, /tools\.a\._meta is/],
    [
      { inputSchema: { type: "string" } },
      /inputSchema is .+, wanted a JSON Schema object of type "object"/,
    ],
    [{ inputSchema: { type: null } }, /inputSchema is/],
    [{ inputSchema: { type: ["object", "null"] } }, /inputSchema is/],
  ];
  for (const [tool, message] of table) {
    assert.throws(() => parseModuleMeta({ name: "x", tools: { a: tool } }, "x.ts"), message);
  }
  assert.ok(parses({ name: "x", later: 1, tools: { a: { later: 1, inputSchema: {} } } }));
});
