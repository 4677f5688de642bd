import assert from "node:assert/strict";
import fc from "fast-check";
import { PmlError } from "./errors.ts";
import { matches, narrowness, parsePattern } from "./pattern.ts";
import { toolId } from "./tool_id.ts";

Deno.test("parsePattern() reads the documented grammar and nothing else", () => {
  const good = ["*", "fs:*", "fs:read", "fs:@resources", "fs:@sampling", "a.b:c-d"];
  for (const text of good) assert.equal(parsePattern(text).text, text);
  const bad = [
    "",
    ":",
    "**",
    "file*",
    "*:read",
    "*:*",
    "fs:",
    ":read",
    "a:b:c",
    "{a,b}:c",
    "!fs:x",
    "fs:[a-z]",
    "fs:rea*",
    "fs:@anything",
    "fs:read\n",
    "Fs:read",
    "fs:read(path=src/**)",
    " fs:read",
  ];
  for (const text of bad) {
    assert.throws(
      () => parsePattern(text),
      (error) => error instanceof PmlError && error.code === "CONFIG_INVALID",
      JSON.stringify(text),
    );
  }
});

Deno.test("matches() covers by whole names, never by prefix", () => {
  assert.ok(matches(parsePattern("fs:*"), toolId("fs", "read")));
  assert.ok(!matches(parsePattern("fs:*"), toolId("fs-evil", "read")));
  assert.ok(!matches(parsePattern("fs:read"), toolId("fs", "read_file")));
  assert.ok(matches(parsePattern("*"), toolId("any", "a/b")));
  assert.ok(narrowness(parsePattern("fs:read")) > narrowness(parsePattern("fs:*")));
  assert.ok(narrowness(parsePattern("fs:*")) > narrowness(parsePattern("*")));
});

Deno.test("matches() agrees with comparing the two halves", () => {
  const name = fc.constantFrom("a", "b", "a-b");
  fc.assert(fc.property(name, name, name, name, (ps, pt, s, t) => {
    assert.equal(matches(parsePattern(`${ps}:${pt}`), toolId(s, t)), ps === s && pt === t);
  }));
});
