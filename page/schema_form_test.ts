import assert from "node:assert/strict";
import { argumentsOf, fieldsOf, initialEntries } from "./schema_form.ts";

const SCHEMA = {
  type: "object",
  properties: {
    note: { type: ["string", "null"], default: "none" },
    count: { type: "integer" },
    ratio: { type: "number", default: 0.5 },
    isOpen: { type: "boolean" },
    level: { enum: ["low", 2, null] },
    labels: { type: "array" },
    constructor: { type: "string" },
  },
  required: ["count", "constructor"],
};

Deno.test("fieldsOf() returns the fields of a schema, the required ones first", () => {
  const fields = fieldsOf(SCHEMA);
  assert.deepEqual(fields.map(({ name, kind }) => `${name} ${kind}`), [
    "count number",
    "constructor text",
    "note text",
    "ratio number",
    "isOpen boolean",
    "level choice",
    "labels json",
  ]);
  assert.deepEqual(fields.find(({ name }) => name === "level")?.choices, ['"low"', "2", "null"]);
  for (const odd of [undefined, null, [], "x", { properties: [] }, { properties: { a: null } }]) {
    assert.ok(Array.isArray(fieldsOf(odd)));
  }
});

Deno.test("argumentsOf() keeps the digits of numbers, and leaves out empty fields", () => {
  const fields = fieldsOf(SCHEMA);
  const entries = new Map([...initialEntries(fields), ["count", "9007199254740993"]]);
  assert.deepEqual(argumentsOf(fields, entries).problems, [
    { name: "constructor", text: "is required" },
  ]);
  entries.set("constructor", "").set("labels", '["a"]').set("level", "null");
  const { text, problems } = argumentsOf(fields, entries);
  assert.deepEqual(problems, []);
  assert.equal(
    text,
    '{"count":9007199254740993,"constructor":"","note":"none","ratio":0.5,"level":null,' +
      '"labels":["a"]}',
  );
});

Deno.test("argumentsOf() reports entries that are no JSON and no numbers", () => {
  const fields = fieldsOf(SCHEMA);
  const wrong = { count: "1.5", constructor: "x", ratio: "0x1", labels: "[1,", isOpen: "true" };
  const { problems } = argumentsOf(fields, new Map(Object.entries(wrong)));
  assert.deepEqual(problems.map(({ name }) => name), ["count", "ratio", "labels"]);
});
