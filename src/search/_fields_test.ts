import assert from "node:assert/strict";
import type { JsonObject } from "../core/json.ts";
import { toolId } from "../core/tool_id.ts";
import { FIELD_WEIGHTS, fieldsOf } from "./_fields.ts";

function fields(inputSchema: JsonObject, description = ""): readonly string[] {
  const tool = { name: "t", description, inputSchema };
  return fieldsOf({ id: toolId("s", "t"), tool, server: { name: "s", origin: "builtin" } });
}

Deno.test("fieldsOf() returns one text for each weight, including the names of nested parameters", () => {
  const inner = { type: "object", properties: { deep: { description: "Inner one" } } };
  const got = fields({ properties: { list: { type: "array", items: inner } } }, "Does things");
  assert.deepEqual(got.map((text) => text.trim()), [
    "t",
    "s",
    "Does things",
    "list deep",
    "Inner one",
  ]);
  assert.equal(got.length, FIELD_WEIGHTS.length);
});

Deno.test("fieldsOf() caps each text, the depth and the number of parameters", () => {
  let nested: JsonObject = {};
  for (let i = 20; i > 0; i--) nested = { properties: { [`level${i}`]: nested } };
  assert.equal(fields(nested)[3], "level1 level2 level3 level4 level5");
  const many = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`p${i}`, {}]));
  assert.equal(fields({ properties: many })[3]?.split(" ").length, 200);
  const long = { properties: { ["n".repeat(5_000)]: { description: "d".repeat(5_000) } } };
  for (const text of fields(long, "x".repeat(5_000))) assert.ok(text.length <= 2_000);
});
