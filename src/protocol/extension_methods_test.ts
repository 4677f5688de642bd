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

Deno.test("extensions that PML itself uses are not passed on", () => {
  const extensions = { "io.modelcontextprotocol/tasks": {}, "x.test/notes": { a: 1 } };
  assert.deepEqual(passedExtensions({ extensions }), { "x.test/notes": { a: 1 } });
  assert.equal(declaresExtensionOf("tasks/other", { extensions }), false);
  assert.equal(declaresExtensionOf("notes/other", { extensions }), true);
  assert.equal(declaresExtensionOf("notes/other"), false);
  const own = { extensions: { "x.test/pml": {} } };
  assert.equal(declaresExtensionOf("notifications/pml/not_begun", own), false);
  assert.equal(declaresExtensionOf("notes/other", { extensions: ["x.test/notes"] }), false);
});
