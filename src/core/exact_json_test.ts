import assert from "node:assert/strict";
import fc from "fast-check";
import { parseExact } from "./exact_json.ts";
import { withRoundedNumbers } from "./exact_number.ts";

const NUMBERS = ["1.0", "1e400", "-0", "9007199254740993", "0.1", "12", "-1.50", "1E2", "1e+21"];

Deno.test("parseExact() keeps the text of each number", () => {
  const texts = [
    ...NUMBERS,
    `[${NUMBERS.join(",")}]`,
    '{"a":1.0,"b":[{"c":-0}],"d":"1.0 and 9007199254740993","e":"\\"1.0"}',
    '{"__proto__":1.0}',
    '["\\\\",1.0]',
    '{"a\\u0062":1.0}',
  ];
  for (const text of texts) {
    assert.equal(JSON.stringify(parseExact(text)), text.replace("\\u0062", "b"), text);
  }
  assert.equal(
    JSON.stringify(parseExact(' {\n"a" :\t1.0 , "b": [ 1e400\r]}')),
    '{"a":1.0,"b":[1e400]}',
  );
});

Deno.test("parseExact() takes the last of two members with the same name, at any depth", () => {
  assert.equal(
    JSON.stringify(parseExact('{"a":1.0,"b":{"c":2.0,"c":3.0},"a":4.0}')),
    '{"a":4.0,"b":{"c":3.0}}',
  );
  assert.equal(JSON.stringify(parseExact('{"b":{"c":2.0,"c":3}}')), '{"b":{"c":3}}');
});

Deno.test("parseExact() throws where JSON.parse does", () => {
  const bad = [
    "1.",
    ".5",
    "01.0",
    "1.0.0",
    "1.01.0",
    "--1.0",
    "-",
    "[1.0 2.0]",
    "{1.0:1}",
    '{"a":1.0"b"}',
  ];
  for (
    const text of [...bad, '"1.0', "1.0,", "1e", "1.0e+", "[1.0", "+1.0", "1.0 x", "", '{"a" 1.0}']
  ) {
    assert.throws(() => parseExact(text), SyntaxError, text);
  }
});

Deno.test("parseExact() reads every text as JSON.parse does, apart from its numbers", () => {
  const piece = fc.constantFrom(
    ...NUMBERS,
    ...["{", "}", "[", "]", ",", ":", '"a":', '"', "\\", '"x"', " ", "null", "-", "0", "e", "."],
  );
  const read = (parse: (text: string) => unknown, text: string) => {
    try {
      return { value: parse(text) };
    } catch {
      return undefined;
    }
  };
  const rounded = (text: string) => withRoundedNumbers(parseExact(text));
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
      const text = pieces.join("");
      assert.deepEqual(read(rounded, text), read(JSON.parse, text));
    }),
    { numRuns: 3_000 },
  );
  fc.assert(fc.property(fc.json(), (text) => {
    assert.deepEqual(read(rounded, text), read(JSON.parse, text));
  }));
});
