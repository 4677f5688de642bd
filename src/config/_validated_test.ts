import assert from "node:assert/strict";
import { join } from "node:path";
import { Scratch } from "./_scratch_test.ts";

const FULL = JSON.stringify({
  version: 1,
  permissions: { allow: ["*", "a:b"], deny: ["shell:*"] },
  private_mcps: { weather: { type: "deno", path: "w.ts" } },
  mcpServers: { GitHub: { command: "x", env: { A: "b" } }, far: { url: "https://far.example" } },
  grants: { weather: { read: ["/"] } },
  intent: "take over",
});

/** Returns how many files are marked as valid. */
function marksIn({ home }: Scratch): number {
  try {
    return [...Deno.readDirSync(join(home, "valid"))].length;
  } catch {
    return 0;
  }
}

Deno.test("A file that was checked before is read the same, and one with another byte is checked", async () => {
  using scratch = new Scratch();
  const file = "ws/.pml.json";
  for (const [count, content] of [[1, FULL], [2, FULL.replace("take over", "help")]] as const) {
    scratch.write(file, content);
    const first = (await scratch.load()).file;
    assert.equal(marksIn(scratch), count);
    assert.deepEqual((await scratch.load()).file, first);
    assert.deepEqual(first?.servers.map(({ kind }) => kind), ["deno", "stdio", "http"]);
    assert.equal(marksIn(scratch), count);
  }
  scratch.write(file, FULL.replace('"x"', "7"));
  assert.match((await scratch.load()).problem?.message ?? "", /mcpServers\.GitHub\.command/);
  // The person's file has another schema: the same bytes say nothing about it.
  scratch.write(file, '{"version": 1}');
  assert.equal((await scratch.load()).problem, undefined);
  scratch.write("user/.pml/config.yaml", '{"version": 1}');
  assert.match((await scratch.load()).problem?.message ?? "", /config\.yaml.*an unknown key/);
});

Deno.test("No mark is left of a file of which its schema makes something else", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", '{"version": 1, "grants": {"__proto__": {"read": ["/"]}}}');
  await scratch.load();
  assert.equal(marksIn(scratch), 0);
});
