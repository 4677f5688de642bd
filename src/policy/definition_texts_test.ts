import assert from "node:assert/strict";
import { parseExact } from "../core/exact_json.ts";
import { definitionLines } from "./definition_texts.ts";

Deno.test("definitionLines() shows numbers with their original text, and omits limits of schemas", () => {
  const schema =
    '{"properties":{"a":{"minimum":0.0,"default":1.0,"x-id":725653563933458432,"x-n":[2.0]}}}';
  const lines = definitionLines({ name: "t", inputSchema: parseExact(schema) });
  assert.deepEqual(lines.filter((line) => !line.startsWith("^")), [
    '| parameters "a" default: 1.0',
    '| parameters "a" x-id: 725653563933458432',
    '| parameters "a" x-n 1: 2.0',
  ]);
});
