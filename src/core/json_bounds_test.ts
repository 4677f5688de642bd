import assert from "node:assert/strict";
import fc from "fast-check";
import { boundedJson, exceededLimit } from "./json_bounds.ts";

function excess(text: string): string | undefined {
  return exceededLimit(new TextEncoder().encode(text));
}

Deno.test("excessOf() counts all values, in objects and arrays of any depth", () => {
  // The list itself is a value.
  assert.equal(excess(`[${"0,".repeat(499_999)}0]`), undefined);
  for (const each of ["{},", "[],", '"",']) {
    assert.equal(excess(`[${each.repeat(499_999)}0]`), undefined, each);
  }
  for (const each of ["0,", "{},", "[],", '"",', "\n[\n]\n,", '{"a":{}},', "null,"]) {
    assert.match(excess(`[${each.repeat(500_000)}0]`) ?? "", /over 500000 JSON values/, each);
  }
});

Deno.test("excessOf() counts nothing in texts, however long, short or escaped they are", () => {
  const texts = [",[{", '"', '\\"', "\\", '\\\\"', "x".repeat(47), "é,", `${"y".repeat(50)}",[`];
  for (const text of texts) {
    for (const times of [10_000, 1_100_000 / text.length]) {
      assert.equal(excess(JSON.stringify([text.repeat(times), "", text])), undefined, text);
    }
    const list = Array.from({ length: 300_000 }, () => text);
    assert.equal(excess(JSON.stringify(list)), undefined, text);
    assert.ok(excess(JSON.stringify([...list, ...list])) !== undefined, text);
  }
});

Deno.test("excessOf() counts names that the platform compares with each other, and no long texts", () => {
  const long = "x".repeat(16_400);
  const many = Array.from({ length: 101 }, (_, at) => long + at);
  assert.equal(excess(JSON.stringify(many)), undefined);
  const named = (names: readonly string[]) => names.map((name) => `"${name}" \n: 1`).join();
  assert.equal(excess(`{${named(many.slice(1))}}`), undefined);
  assert.match(excess(`{${named(many)}}`) ?? "", /over 100 names of more than 16000 bytes/);
  assert.equal(excess(`["${long}"   `), undefined);
});

Deno.test("excessOf() finds depth, and nothing that JSON.parse() takes and that is small", () => {
  assert.match(excess(`${"[".repeat(10_001)}${"]".repeat(10_001)}`) ?? "", /deeper than 10000/);
  assert.match(excess(`${'{"a":'.repeat(10_001)}0${"}".repeat(10_001)}`) ?? "", /deeper/);
  assert.equal(excess(`${"[".repeat(10_000)}${"]".repeat(10_000)}`), undefined);
  assert.equal(excess(`[${"[],".repeat(100_000)}0]`), undefined);
  fc.assert(fc.property(fc.json(), (text) => {
    assert.equal(excess(`[${`${text},`.repeat(Math.ceil(30_000 / text.length))}0]`), undefined);
  }));
});

Deno.test("excessOf() ends for any bytes", () => {
  fc.assert(fc.property(fc.uint8Array({ minLength: 1, maxLength: 50 }), (bytes) => {
    const many = new Uint8Array(40_000).map((_, at) => bytes[at % bytes.length] ?? 0);
    exceededLimit(many);
  }));
  for (const text of ['"', '"\\', "\\", '"x\\"']) excess(`${" ".repeat(30_000)}${text}`);
});

Deno.test("boundedJson() returns undefined for invalid JSON, and for too large JSON", () => {
  const read = (text: string) => boundedJson(new TextEncoder().encode(text));
  assert.deepEqual(read('{"a":[1]}'), { a: [1] });
  assert.equal(read("{"), undefined);
  assert.equal(read(`[${"{},".repeat(600_000)}{}]`), undefined);
});
