import assert from "node:assert/strict";
import fc from "fast-check";
import type { Json, JsonObject } from "../core/json.ts";
import { parseToolId } from "../core/tool_id.ts";
import { parseArguments, parseId, parseObject } from "./_arguments.ts";

const schema: JsonObject = {
  type: "object",
  $defs: { size: { type: "integer" }, loop: { $ref: "#/$defs/loop" } },
  properties: {
    text: { type: "string" },
    count: { type: "integer" },
    ratio: { type: "number" },
    flag: { type: "boolean" },
    list: { type: "array" },
    map: { type: "object" },
    none: { type: "null" },
    either: { type: ["number", "string"] },
    perhaps: { anyOf: [{ type: "boolean" }, { type: "null" }] },
    level: { enum: [1, 2, 3] },
    named: { $ref: "#/$defs/size" },
    loop: { $ref: "#/$defs/loop" },
    anything: {},
  },
};

function parse(...pairs: string[]): JsonObject {
  return parseArguments(pairs, { base: {}, schema });
}

Deno.test("parseArguments() reads a value by the type that the schema wants", () => {
  const table: [string, Json][] = [
    ["text=12", "12"],
    ["text=", ""],
    ["text=a=b", "a=b"],
    ["text=line\nline", "line\nline"],
    ["count=12", 12],
    ["count=1.5", 1.5],
    ["ratio=-1.5", -1.5],
    ["flag=true", true],
    ['list=["a", 1]', ["a", 1]],
    ['map={"a": 1}', { a: 1 }],
    ["none=null", null],
    ["either=12", "12"],
    ["either=twelve", "twelve"],
    ["perhaps=false", false],
    ["perhaps=null", null],
    ["level=2", 2],
    ["named=3", 3],
    ["loop=3", "3"],
    ["anything=3", "3"],
    ["unknown=3", "3"],
    ["text:=3", 3],
    ['anything:={"a": [true]}', { a: [true] }],
  ];
  for (const [pair, wanted] of table) {
    const [name = ""] = pair.split(/:?=/);
    assert.deepEqual(parse(pair), { [name]: wanted }, pair);
  }
});

Deno.test("parseArguments() refuses arguments without =, invalid JSON, and repeated keys", () => {
  const wrong = [
    "text",
    "=x",
    "count=x",
    "flag=yes",
    "list=a",
    "a:=x",
    ":=1",
  ];
  for (const pair of wrong) assert.throws(() => parse(pair), { code: "USAGE" }, pair);
  assert.throws(() => parse("text=a", "text=b"), { code: "USAGE" });
  const base = { text: "a" };
  assert.throws(() => parseArguments(["text=b"], { base, schema }), { code: "USAGE" });
});

Deno.test("parseArguments() keeps any text of a string, under any name", () => {
  const name = fc.string({ minLength: 1 }).filter((text) => !/[=:]/.test(text));
  fc.assert(fc.property(name, fc.string(), (key, text) => {
    const given = parseArguments([`${key}=${text}`], { base: {}, schema: {} });
    assert.deepEqual(Object.entries(given), [[key, text]]);
    assert.equal(Object.getPrototypeOf(given), Object.prototype);
  }));
});

Deno.test("parseObject() takes a JSON object and nothing else", () => {
  assert.deepEqual(parseObject('{"a": 1}'), { a: 1 });
  for (const text of ["", "[]", "1", "null", "{a: 1}", '"{}"']) {
    assert.throws(() => parseObject(text), { code: "USAGE" }, text);
  }
});

const SERVERS = { idOf: parseToolId };

Deno.test("parseId() reads both ways of writing a tool", () => {
  assert.equal(parseId("filesystem:read_file", SERVERS), "filesystem:read_file");
  assert.equal(parseId("filesystem__read_file", SERVERS), "filesystem:read_file");
  for (const name of ["", "read_file", ":x", "x:", "A:b", "pml:call", "a b:c"]) {
    assert.throws(() => parseId(name, SERVERS), { code: "USAGE" }, name);
  }
});
