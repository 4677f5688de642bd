import assert from "node:assert/strict";
import { withEntry } from "./yaml_text.ts";

Deno.test("put() sets names that every object inherits on the object itself, and nowhere else", () => {
  for (const name of ["__proto__", "constructor"]) {
    const data = withEntry({}, { at: [name, "odd"], entry: 1 });
    assert.equal(JSON.stringify(data), `{"${name}":{"odd":1}}`);
    assert.equal(Object.hasOwn(Object.prototype, "odd"), false);
  }
});
