import assert from "node:assert/strict";
import fc from "fast-check";
import { parseExact } from "../core/exact_json.ts";
import { canonicalHash, definitionHash, parseFqdn, PmlError } from "./registry.ts";

/** An action is also a part of a path, and Windows opens devices by their names. */
const PATHS = ["fs:../x", "fs:a..b", "fs:a/b", "fs:A", "con", "nul.x", "com1"];

Deno.test("parseFqdn() parses names, actions and versions, and rejects the rest before any I/O", () => {
  assert.deepEqual(parseFqdn("fs"), { name: "fs", action: undefined, version: undefined });
  assert.deepEqual(parseFqdn("fs:read_json@1.2.0"), {
    name: "fs",
    action: "read_json",
    version: "1.2.0",
  });
  const bad = ["", "../x", "a/b", "a%2fb", "a?b", "A", "a".repeat(300), "a\0", "__proto__"];
  for (const text of [...bad, "fs.", "a:b:c", "fs@", "fs@../x", "fs@1@2", "fѕ", ...PATHS]) {
    assert.throws(
      () => parseFqdn(text),
      (error) => error instanceof PmlError && error.code === "NAME_INVALID",
      JSON.stringify(text),
    );
  }
});

Deno.test("definitionHash() ignores the order of keys and depends on everything else", () => {
  fc.assert(fc.property(
    fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 2 }), { noNullPrototype: true }),
    (extra) => {
      const definition = { ...extra, name: "t", inputSchema: { type: "object" } } as never;
      const turned = Object.fromEntries(Object.entries(definition).reverse()) as never;
      assert.equal(definitionHash(definition), definitionHash(turned));
      const other = { ...(definition as object), description: crypto.randomUUID() } as never;
      assert.notEqual(definitionHash(definition), definitionHash(other));
    },
  ));
});

Deno.test("definitionHash() equals that of earlier versions for all numbers", () => {
  const textOf = (number: string) =>
    `{"name":"t","inputSchema":{"type":"object","properties":{"a":{"default":${number}}}}}`;
  const hashOf = (number: string) => definitionHash(parseExact(textOf(number)));
  for (const number of ["1.0", "1E2", "0.50", "-0", "9223372036854775807", "725653563933458432"]) {
    assert.equal(hashOf(number), canonicalHash(JSON.parse(textOf(number))), number);
  }
  const others = ["725653563933458432", "725653563933458632", "1e400", '{"rawJSON":"1"}'];
  assert.equal(new Set(others.map(hashOf)).size, others.length);
});
