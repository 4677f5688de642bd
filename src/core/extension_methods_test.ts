import assert from "node:assert/strict";
import { declaresExtensionOf, isExtensionOf, passedExtensions } from "./extension_methods.ts";

Deno.test("a method belongs to the extension whose id ends in its first segment", () => {
  for (const method of ["skills/list", "notifications/skills/changed", "skills"]) {
    assert.equal(isExtensionOf("io.modelcontextprotocol/skills", method), true, method);
    assert.equal(isExtensionOf("skills", method), true, method);
  }
  for (const method of ["skill/list", "x/skills", "notifications/x/skills", "", "/skills"]) {
    assert.equal(isExtensionOf("io.modelcontextprotocol/skills", method), false, method);
  }
});

Deno.test("the extension for tasks is not passed on: PML itself uses it", () => {
  const extensions = { "io.modelcontextprotocol/tasks": {}, "x.test/notes": { a: 1 } };
  assert.deepEqual(passedExtensions({ extensions }), { "x.test/notes": { a: 1 } });
  assert.equal(declaresExtensionOf("tasks/other", { extensions }), false);
  assert.equal(declaresExtensionOf("notes/other", { extensions }), true);
  assert.equal(declaresExtensionOf("notes/other"), false);
  assert.equal(declaresExtensionOf("notes/other", { extensions: ["x.test/notes"] }), false);
});
