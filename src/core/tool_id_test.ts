import assert from "node:assert/strict";
import fc from "fast-check";
import {
  isServerName,
  isToolName,
  isUsableServerName,
  parseToolId,
  serverSlug,
  toolId,
  wireName,
} from "./tool_id.ts";
import { PmlError } from "./errors.ts";

const NAMES: readonly (readonly [string, boolean])[] = [
  ["filesystem", true],
  ["a", true],
  ["a.b_c-d", true],
  ["x".repeat(64), true],
  ["x".repeat(65), false],
  ["", false],
  ["A", false],
  ["a__b", false],
  ["a..b", false],
  [".a", false],
  ["a.", false],
  ["a b", false],
  ["a/b", false],
  ["a\n", false],
  ["__proto__", false],
  ["fіlesystem", false],
  ["search", false],
  ["searches", true],
  ["batch", false],
  ["my-batch", true],
  ["execute_code", false],
];

Deno.test("isServerName() takes only the documented names", () => {
  for (const [name, valid] of NAMES) {
    assert.equal(isServerName(name), valid, JSON.stringify(name));
    assert.equal(isUsableServerName(name), valid, JSON.stringify(name));
  }
});

Deno.test("pml names the cloud's own server, and nobody may call another so", () => {
  assert.ok(isServerName("pml"));
  assert.ok(!isUsableServerName("pml"));
  assert.throws(() => serverSlug("PML"), { code: "NAME_INVALID" });
  for (const text of ["pml:search_tools", "pml__search_tools", "mcp__pml__pml__search_tools"]) {
    assert.equal(parseToolId(text), "pml:search_tools");
  }
  for (const name of ["search", "schema", "call", "batch", "execute_code", "execute_workflow"]) {
    assert.equal(parseToolId(`pml:${name}`), undefined, name);
  }
});

Deno.test("serverSlug() returns a valid name or throws NAME_INVALID", () => {
  assert.equal(serverSlug("GitHub"), "github");
  assert.equal(serverSlug("My  Server!"), "my-server");
  assert.equal(serverSlug("a___b...c"), "a_b.c");
  fc.assert(fc.property(fc.string({ unit: "binary" }), (name) => {
    try {
      assert.ok(isServerName(serverSlug(name)));
    } catch (error) {
      assert.ok(error instanceof PmlError && error.code === "NAME_INVALID");
    }
  }));
});

Deno.test("parseToolId() reads the three ways of writing a tool", () => {
  for (const text of ["fs:read", "fs__read", "mcp__pml__fs__read"]) {
    assert.equal(parseToolId(text), "fs:read");
  }
  assert.equal(parseToolId("fs__a__b"), "fs:a__b");
  for (const text of ["", "fs", ":x", "x:", "Fs:read", "a:b:c", "fs:read\n"]) {
    assert.equal(parseToolId(text), undefined, text);
  }
});

Deno.test("isToolName() takes words, and between two of them one character of sentences", () => {
  for (const name of ["Tacotron 2", "PDF&URLTool", "it's", "a/b.c-d_e", "x".repeat(128)]) {
    assert.ok(isToolName(name), name);
    assert.equal(parseToolId(`fs:${name}`), `fs:${name}`);
  }
  const foreign = [
    "",
    " a",
    "a ",
    "a  b",
    "a (b)",
    "a*",
    'a"',
    "a\u00a0b",
    "a:b",
    "@a",
    "é",
    "a\nb",
  ];
  for (const name of [...foreign, "x".repeat(129), "a ".repeat(64) + "b"]) {
    assert.ok(!isToolName(name), name);
  }
});

Deno.test("wireName() returns names that clients allow, different for different tools", () => {
  assert.equal(wireName(toolId("fs", "read_file")), "fs__read_file");
  const seen = new Map<string, string>();
  fc.assert(
    fc.property(
      fc.stringMatching(/^[A-Za-z0-9_./-]{1,60}(?:[ &+'][A-Za-z0-9_./-]{1,9}){0,5}$/),
      (tool) => {
        const id = toolId("server", tool);
        const name = wireName(id);
        assert.match(name, /^[A-Za-z0-9_-]{1,64}$/);
        assert.equal(seen.get(name) ?? id, id);
        seen.set(name, id);
      },
    ),
  );
});
