import assert from "node:assert/strict";
import fc from "fast-check";
import { confusableWith } from "./confusable.ts";

const KNOWN = ["filesystem", "github", "git", "shell", "server-memory"];

Deno.test("confusableWith() finds the name that another could be taken for", () => {
  const pairs = [
    ["fi1esystem", "filesystem"],
    ["filesystern", "filesystem"],
    ["file-system", "filesystem"],
    ["filesystems", "filesystem"],
    ["filesytem", "filesystem"],
    ["filesysetm", "filesystem"],
    ["gihtub", "github"],
    ["githob", "github"],
    ["g1t", "git"],
    ["server.memory", "server-memory"],
  ];
  for (const [name = "", known] of pairs) assert.equal(confusableWith(name, KNOWN), known, name);
});

Deno.test("confusableWith() accepts known names, and names that look different", () => {
  for (const name of [...KNOWN, "gist", "fit", "shelf-life", "weather", "files", "githubs2", "a"]) {
    assert.equal(confusableWith(name, KNOWN), undefined, name);
  }
});

Deno.test("confusableWith() is the same both ways", () => {
  const name = fc.stringMatching(/^[a-z0-9][a-z0-9._-]{0,12}[a-z0-9]$/);
  fc.assert(fc.property(name, name, (one, other) => {
    const [there] = [confusableWith(one, [other])];
    assert.equal(there === undefined, confusableWith(other, [one]) === undefined);
  }));
});
