/** Tests of the layout of edited JSON texts: each edit changes whole lines, and nothing else. */

import assert from "node:assert/strict";
import fc from "fast-check";
import * as jsonc from "jsonc-parser";
import { JsonText } from "./json_text.ts";

/** Returns the text after an edit. */
function edited(text: string, edit: (text: JsonText) => void): string {
  const json = new JsonText(text, jsonc);
  edit(json);
  return json.text;
}

/** Returns an entry of this length in JSON. */
function entryOf(length: number): string {
  return "a".repeat(length - 2);
}

Deno.test("set() adds a member on its own line, with the indentation of its siblings", () => {
  const cases: readonly (readonly [before: string, after: string])[] = [
    ['{\n    "a": 1\n}\n', '{\n    "a": 1,\n    "n": {\n        "x": 1\n    }\n}\n'],
    ['{\r\n\t"a": 1 // a\r\n}', '{\r\n\t"a": 1, // a\r\n\t"n": {\r\n\t\t"x": 1\r\n\t}\r\n}'],
    ["{}", '{\n  "n": {\n    "x": 1\n  }\n}'],
    ["{ // mine\n}\n", '{ // mine\n  "n": {\n    "x": 1\n  }\n}\n'],
    ['{"a": 1}', '{"a": 1, "n": { "x": 1 }}'],
  ];
  for (const [before, after] of cases) {
    assert.equal(edited(before, (text) => text.set(["n"], { x: 1 })), after);
  }
});

Deno.test("set() writes an empty object that gets its first member on lines, also in an object on one line", () => {
  const after = '{\n  "a": 1,\n  "o": {\n    "n": true\n  }\n}';
  assert.equal(edited('{\n  "a": 1,\n  "o": {}\n}', (text) => text.set(["o", "n"], true)), after);
  assert.equal(edited('{"a": 1, "o": { }}', (text) => text.set(["o", "n"], true)), after);
  assert.equal(edited('{\n  "a": 1\n}', (text) => text.set(["o", "n"], true)), after);
});

Deno.test("set() keeps a list on one line only if it is short", () => {
  const list = (...entries: readonly string[]) => (text: JsonText) => text.set(["a"], entries);
  const [half, most] = [entryOf(30), entryOf(36)];
  assert.equal(
    edited(`{\n  "a": ["${half}"]\n}`, list(half, half + "b")),
    `{\n  "a": ["${half}", "${half}b"]\n}`,
  );
  assert.equal(
    edited(`{\n  "a": ["${most}", "${half}"]\n}`, list(most, half, "b c d e f")),
    `{\n  "a": [\n    "${most}",\n    "${half}",\n    "b c d e f"\n  ]\n}`,
  );
  assert.equal(edited('{\n  "a": []\n}', list("b")), '{\n  "a": [\n    "b"\n  ]\n}');
});

Deno.test("set() moves entries that share lines to their own lines", () => {
  const text = '{\n  "a": [\n    "b", /* c */ "c", "d" ],\n  "z": [1,2]\n}';
  assert.equal(
    edited(text, (json) => json.set(["a"], ["b", "c", "d", "e"])),
    '{\n  "a": [\n    "b",\n    /* c */ "c",\n    "d",\n    "e"\n  ],\n  "z": [1,2]\n}',
  );
});

Deno.test("remove() removes the line of an entry, and keeps comments and all other lines", () => {
  const cases: readonly (readonly [before: string, after: string])[] = [
    ['[\n  "x",\n  "y"\n]', '[\n  "y"\n]'],
    ['[\n  // y\n  "y",\n  "x"\n]', '[\n  // y\n  "y"\n]'],
    ['[\r\n  "y", // y\r\n  "x",\r\n]', '[\r\n  "y", // y\r\n]'],
    ['[\n  "x"\n]', "[]"],
    ['["x"]', "[]"],
    ['["x", "y"]', '["y"]'],
    ['[ "y", "x" ]', '[ "y" ]'],
    ['[ "x",\n  "y" ]', '[ "y" ]'],
    ['[\n  "y", "x",\n  "z"\n]', '[\n  "y",\n  "z"\n]'],
    ['[\n  "x", // why\n  "y"\n]', '[\n  // why\n  "y"\n]'],
    ['[\n  /* , */ "x" /* , */\n]', "[\n  /* , */  /* , */\n]"],
  ];
  for (const [before, after] of cases) {
    const at = (before.startsWith("[") ? jsonc.parse(before) : []).indexOf("x");
    const text = (list: string) => `{\n"l": ${list}\n}`;
    assert.equal(edited(text(before), (json) => json.remove(["l", at])), text(after));
  }
  assert.equal(
    edited('{\n  "a": {\n    "x": {\n      "b": 1\n    },\n    "y": 2\n  }\n}', (text) => {
      text.remove(["a", "x"]);
    }),
    '{\n  "a": {\n    "y": 2\n  }\n}',
  );
});

Deno.test("an entry that is added and removed again leaves each line of the text as it was", () => {
  const name = fc.constantFrom("a", "b", "c", "d");
  const value = fc.constantFrom<unknown>(1, "x", ["y", "z"], { k: { l: [] } });
  const objects = fc.dictionary(name, fc.oneof(value, fc.dictionary(name, value)), { minKeys: 1 });
  const spaces = fc.constantFrom(2, 4, "\t");
  fc.assert(fc.property(objects, spaces, value, (object, space, added) => {
    const before = JSON.stringify({ o: object, end: 0 }, null, space);
    const after = edited(before, (text) => text.set(["o", "n"], added));
    assert.equal(after, JSON.stringify({ o: { ...object, n: added }, end: 0 }, null, space));
    assert.equal(edited(after, (text) => text.remove(["o", "n"])), before);
  }));
});
