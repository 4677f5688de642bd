import assert from "node:assert/strict";
import { withEntry, yamlWith } from "./yaml_text.ts";

Deno.test("put() sets names that every object inherits on the object itself, and nowhere else", () => {
  for (const name of ["__proto__", "constructor"]) {
    const data = withEntry({}, { at: [name, "odd"], entry: 1 });
    assert.equal(JSON.stringify(data), `{"${name}":{"odd":1}}`);
    assert.equal(Object.hasOwn(Object.prototype, "odd"), false);
  }
});

Deno.test("yamlWith() keeps the spaces within brackets of lines that it does not change", async () => {
  const lines = [
    "mcpServers:",
    "  a: { command: node, args: [/x.js] }",
    "  b: {command: node, args: [ /y.js, -c ]}",
    '  c: { command: "a { b", args: [] }',
  ];
  const settings = [{ at: ["permissions", "allow"] as const, entry: ["a:b"] }];
  const text = await yamlWith(`${lines.join("\n")}\n`, { path: "config.yaml", settings });
  assert.deepEqual(text.split("\n").slice(0, lines.length), lines);
  assert.match(text, /^permissions:\n {2}allow:\n {4}- a:b$/m);
});
