import assert from "node:assert/strict";
import { Scratch } from "./_scratch_test.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

Deno.test("A key that would be a prototype is refused in every file", async () => {
  using scratch = new Scratch();
  const said = {
    "ws/.pml.json": '{"mcpServers": {"a": {"__proto__": {"command": "x"}}}}',
    "user/.pml/config.yaml": "mcpServers:\n  a:\n    __proto__:\n      command: x\n",
  };
  for (const [file, text] of Object.entries(said)) {
    scratch.write(file, text);
    const { problem } = await scratch.load();
    assert.match(problem?.message ?? "", /a\.__proto__": found/, file);
    // Inherited members count as missing.
    assert.match(JSON.stringify(problem?.detail), /a\.(command|url)","found":"nothing"/, file);
    scratch.write(file, "{}");
  }
});

Deno.test("a date or a prototype of YAML is not a configuration object", async () => {
  using scratch = new Scratch();
  for (
    const [text, key] of [
      ["%YAML 1.1\n---\nmcpServers: 2001-12-14\n", "mcpServers"],
      ["%YAML 1.1\n---\nidentities: 2001-12-14T21:59:43.10-05:00\n", "identities"],
      ["toolsets:\n  __proto__: [a:b]\n", "toolsets.__proto__"],
    ] as const
  ) {
    scratch.write("user/.pml/config.yaml", text);
    const { problem } = await scratch.load();
    assert.ok(problem?.message.includes(`key "${key}"`), `${text}: ${problem?.message}`);
  }
});

Deno.test("every problem of a file is reported with its position", async () => {
  using scratch = new Scratch();
  scratch.write(
    "ws/.pml.json",
    `{
  "permisions": {},
  "permissions": { "allow": ["a", "b:c"], "deny": "x" },
  "mcpServers": { "a": { "command": 7, "args": [1, "x"], "env": { "1": "x" } } },
  "private_mcps": { "b": { "type": "node" }, "c": 1 },
  "gateway": { "hybrid": { "semantic_threshold": 2, "max_tokens": 1.5 } }
}`,
  );
  const { problem } = await scratch.load();
  const { problems } = problem?.detail as { problems: Record<string, unknown>[] };
  assert.deepEqual(
    problems.map(({ line, key, found }) => [line, key, found]).sort(),
    [
      [2, "permisions", "an unknown key"],
      [3, "permissions.allow[0]", '"a" (a string)'],
      [3, "permissions.deny", '"x" (a string)'],
      [4, "mcpServers.a.args[0]", "1 (a number)"],
      [4, "mcpServers.a.command", "7 (a number)"],
      [4, "mcpServers.a.env.1", "an unknown key"],
      [5, "private_mcps.b.type", '"node" (a string)'],
      [5, "private_mcps.c", "1 (a number)"],
      [6, "gateway.hybrid.max_tokens", "1.5 (a number)"],
      [6, "gateway.hybrid.semantic_threshold", "2 (a number)"],
    ],
  );
  const kinds = problems.map(({ key, wanted }) => `${key}: ${wanted}`).sort();
  assertGolden("config/values that keys want", kinds.join("\n"));
});
