import assert from "node:assert/strict";
import fc from "fast-check";
import { parseJson } from "./parse_json.ts";

Deno.test("parseJson() reads a name with an escape correctly after any other text", () => {
  const pairs = [
    [String.raw`{"x":1,"a\\":2}`, String.raw`{"x":1,"a\u0062":2}`, "x,ab"],
    [String.raw`{"y":1,"C:\\":2}`, String.raw`{"y":1,"C:\\temp":2}`, String.raw`y,C:\temp`],
    [String.raw`{"z":1,"q\\":2}`, String.raw`{"z":1,"q\"r" : 2}`, 'z,q"r'],
    [String.raw`[{"w":1,"e\\":2}]`, String.raw`[{"w":1,"e\n":2}]`, "w,e\n"],
  ] as const;
  for (const [before, text, names] of pairs) {
    parseJson(before);
    const value = parseJson(text);
    assert.equal(Object.keys(Array.isArray(value) ? value[0] : value).join(), names);
  }
});

Deno.test("parseJson() parses every other text as JSON.parse does, and no more", () => {
  const piece = fc.constantFrom(
    ...[
      "{",
      "}",
      "[",
      "]",
      ",",
      ":",
      " ",
      '"',
      "\\",
      "\\\\",
      '\\"',
      "\\u0061",
      "\\u00",
      "\\n",
      "\n",
    ],
    ...['"a"', '"a":', '"b\\u0062":', '"\\\\":', '"__proto__":', '"\\u005f_proto__":', "1", "null"],
    ...[
      '{"a":1,"\\u0061":2}',
      '{"\\u0061":2,"a":1}',
      '{"a\\t":{"b\\/":[{"\\u0063":{}}]}}',
      '"\\":"',
    ],
  );
  const parsed = (parse: (text: string) => unknown, text: string) => {
    try {
      return JSON.stringify(parse(text));
    } catch (error) {
      return error instanceof SyntaxError ? "no JSON" : error;
    }
  };
  // The expected value is from `slowly()`, in which V8 cannot confuse names.
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const text = pieces.join("");
      assert.equal(parsed(parseJson, text), parsed(slowly, text), text);
    }),
    { numRuns: 5_000, seed: 3 },
  );
});

Deno.test("parseJson() reads a name with an escape next to a text of any length", () => {
  for (const piece of ["x", '\\"', "\\\\", "\\u0000"]) {
    const long = piece.repeat(20_000_000 / piece.length);
    const value = parseJson(`{"t":"${long}","\\u0061":"${long}","b\\"":1}`);
    assert.deepEqual(Object.keys(value), ["t", "a", 'b"']);
    assert.equal(value.t, JSON.parse(`"${long}"`));
    assert.equal(value.a, value.t);
  }
});

/** Parses each string of a text separately, so that V8 cannot take a name for an earlier name. */
function slowly(text: string): unknown {
  JSON.parse(text); // throws where it is no JSON
  let at = 0;
  const skip = () => {
    while (/[ \t\n\r]/.test(text[at] ?? "")) at++;
  };
  const string = (): string => {
    const [all = ""] = /"(?:[^"\\]|\\[^])*"/y[Symbol.match](text.slice(at)) ?? [];
    at += all.length;
    return JSON.parse(all);
  };
  const value = (): unknown => {
    skip();
    const first = text[at];
    if (first === '"') return string();
    if (first !== "{" && first !== "[") {
      const [all = ""] = /^[^,\]}\s]+/.exec(text.slice(at)) ?? [];
      at += all.length;
      return JSON.parse(all);
    }
    at++;
    const entries: [string, unknown][] = [];
    for (skip(); text[at] !== "}" && text[at] !== "]"; skip()) {
      let name = "";
      if (first === "{") {
        name = string();
        skip();
        at++;
      }
      entries.push([name, value()]);
      skip();
      if (text[at] === ",") at++;
    }
    at++;
    return first === "[" ? entries.map(([, one]) => one) : Object.fromEntries(entries);
  };
  return value();
}
