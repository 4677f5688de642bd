import assert from "node:assert/strict";
import fc from "fast-check";
import { parsePlain } from "./file.ts";
import { parseJsonc, type Syntax } from "./_syntax.ts";

type Parse = typeof parseJsonc | typeof parsePlain;

/** Parses a text, and returns the value; undefined if something is reported. */
async function valueOf(parse: Parse, text: string): Promise<Pick<Syntax, "value"> | undefined> {
  let isReported = false;
  const syntax = await parse(text, () => isReported = true);
  return isReported || syntax === undefined
    ? undefined
    // With the same prototypes.
    : { value: structuredClone(syntax.value) };
}

Deno.test("parsePlain() parses plain JSON as the library does", async () => {
  const keys = fc.constantFrom("a", "b", "__proto__", "constructor", "1", '":', "\\");
  const { json } = fc.letrec<{ json: string }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4 },
      fc.json({ maxDepth: 1 }),
      fc.array(tie("json"), { maxLength: 3 }).map((parts) => `[${parts.join(" , ")}]`),
      fc.array(fc.tuple(keys, tie("json")), { maxLength: 3 }).map((parts) =>
        `{${parts.map(([key, part]) => `${JSON.stringify(key)} : ${part}`).join(",")}}`
      ),
    ),
  }));
  await fc.assert(fc.asyncProperty(json, async (text) => {
    const plain = await valueOf(parsePlain, text);
    if (/\\|"__proto__"/.test(text)) assert.equal(plain, undefined);
    else assert.deepEqual(plain, await valueOf(parseJsonc, text), text);
  }));
});

Deno.test("parsePlain() leaves unusual and invalid texts to the library", async () => {
  const taken = ['{"a":{"b":[1,{"c":":"}]}}', ' { "a" : "::" } ', "[]", '"x"', "{}"];
  for (const text of taken) assert.ok(await valueOf(parsePlain, text), text);
  const left = [
    '{"a": 1, "a": 1}',
    // After an object with the key "\\", V8 reads the second key of this as that one, too.
    '{"a": 1, "\\u0061": 1}',
    '{"a": {"b": 1}, "a": 2}',
    '[{"a": [{"b": 1, "b": 2}]}]',
    '{"a": {"__proto__": {}}}',
    '{"a": 1,}',
    '// a\n{"a": 1}',
    '\uFEFF{"a": 1}',
    '{"a": 1',
    "",
    "[".repeat(1_000_000) + "]".repeat(1_000_000),
  ];
  for (const text of left) {
    assert.equal(await valueOf(parsePlain, text), undefined, text.slice(0, 99));
  }
});
