import assert from "node:assert/strict";
import fc from "fast-check";
import { parseExact } from "./exact_json.ts";
import {
  asPlatformValue,
  decimalText,
  exactNumber,
  hasExactNumber,
  isChangedByParsing,
  isExactNumber,
  withEqualNumbers,
  withExactIntegers,
  withRoundedNumbers,
} from "./exact_number.ts";

const BIG = "725653563933458432";

Deno.test("isChangedByParsing() finds the numbers that JSON.parse changes", () => {
  for (const text of ["1.0", "1e400", "-0", "9007199254740993", BIG, "1E2", "0.10", "1e-400"]) {
    assert.ok(isChangedByParsing(text), text);
  }
  for (const text of ["1", "-1", "0", "0.1", "9007199254740991", "1e+21", "1.5e-7"]) {
    assert.ok(!isChangedByParsing(text), text);
  }
});

Deno.test("decimalText() returns the same text for all spellings of a number", () => {
  const table: Readonly<Record<string, readonly string[]>> = {
    "0": ["0", "-0", "0.0", "0e5", "-0.00e-9"],
    "100": ["100", "1e2", "100.0", "1.00E+2", "1000e-1"],
    "-0.05": ["-0.05", "-5e-2", "-0.0500"],
    "9007199254740993": ["9007199254740993", "9007199254740993.0", "900719925474099.3e1"],
  };
  for (const [decimal, texts] of Object.entries(table)) {
    for (const text of texts) assert.equal(decimalText(text), decimal, text);
  }
  assert.equal(decimalText("1e400"), `1${"0".repeat(400)}`);
  assert.equal(decimalText("12e9000"), decimalText("1.20e9001"));
  assert.ok(decimalText("1e999999999999").length < 30);
});

Deno.test("decimalText() returns a text with the same value for each JavaScript number", () => {
  fc.assert(fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
    assert.equal(Number(decimalText(JSON.stringify(number))), number + 0);
  }));
});

Deno.test("withEqualNumbers() makes equal numbers the same in JSON, and no others", () => {
  const json = (text: string) => JSON.stringify(withEqualNumbers(parseExact(text)));
  for (const text of ["1.0", "10e-1", "0.1e1", "1"]) assert.equal(json(`[${text}]`), "[1]");
  assert.equal(json(`{"a":[1e2,${BIG}.0]}`), `{"a":[100,${BIG}]}`);
  assert.notEqual(json("[9007199254740993]"), json("[9007199254740992]"));
  assert.equal(json("[1E400]"), json("[10e399]"));
  assert.notEqual(json("[1e400]"), json("[2e400]"));
});

Deno.test("a value without exact numbers is the same object", () => {
  const value = parseExact('{"a":[1,2.5,{"b":"1.0"}]}');
  for (
    const convert of [withEqualNumbers, withRoundedNumbers, asPlatformValue, withExactIntegers]
  ) {
    assert.equal(convert(value), value);
  }
});

Deno.test("a program gets large integers as BigInts, and JSON contains their digits", () => {
  const text = `{"a":[${BIG},-9007199254740993],"b":1}`;
  const value = asPlatformValue(parseExact(text));
  assert.deepEqual(value, { a: [BigInt(BIG), -9007199254740993n], b: 1 });
  assert.equal(JSON.stringify(withExactIntegers(value)), text);
  assert.deepEqual(asPlatformValue(parseExact("[1.0,1e400,-0]")), [1, Infinity, -0]);
});

Deno.test("numbers in deep values and under any name are found and mapped", () => {
  const deep = `${'{"__proto__":['.repeat(5_000)}1.0${"]}".repeat(5_000)}`;
  const value = parseExact(deep);
  assert.ok(hasExactNumber(value));
  const rounded = withRoundedNumbers(value);
  assert.ok(!hasExactNumber(rounded));
  assert.ok(hasExactNumber(value));
  assert.deepEqual(Object.keys(rounded), ["__proto__"]);
});

Deno.test("parseExact() makes no exact number from an object with any members", () => {
  assert.ok(!isExactNumber(parseExact('{"rawJSON":"1.0"}')));
  assert.ok(isExactNumber(parseExact("1.0")));
  for (const text of ["", "1 ", "01", '"a"', "[1]", "1.", "+1", "NaN"]) {
    assert.throws(() => exactNumber(text), SyntaxError);
  }
});
