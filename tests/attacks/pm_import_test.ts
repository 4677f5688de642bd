/**
 * Client files of other authors that a user imports.
 *
 * @module
 */

import assert from "node:assert/strict";
import { runPml } from "../kit/run.ts";
import { makeWorkspace } from "../kit/workspace.ts";

Deno.test("pml import soon reads a client's file with many unclosed variables", async () => {
  const args = ["${", "{env:", "${a:-"].map((open) => open.repeat(150_000));
  const mcp = JSON.stringify({ mcpServers: { endless: { command: "x", args } } });
  await using ws = await makeWorkspace({ files: { ".mcp.json": mcp } });
  const result = await runPml(ws, ["import", "claude-code", "--dry-run"], { ms: 20_000 });
  assert.match(result.stdout, /take "endless"/);
});

Deno.test("pml import names the file that nests too deep, and does not call it a bug", async () => {
  for (const [open, close] of [["[", "]"], ['{"a":', "}"]] as const) {
    const deep = `${open.repeat(100_000)}1${close.repeat(100_000)}`;
    const files = { ".mcp.json": `{"mcpServers": {"a": ${deep}}}` };
    await using ws = await makeWorkspace({ files });
    const { stdout, stderr } = await runPml(ws, ["import", ".mcp.json", "--dry-run"]);
    assert.match(stdout, /FAIL Cannot read ".*\.mcp\.json": it is too deep/);
    assert.doesNotMatch(stdout + stderr, /bug|stack/i);
  }
});

Deno.test("pml import refuses __proto__ as a name, and reads the rest", async () => {
  const mcp = `{"mcpServers": {
    "__proto__": {"command": "x"},
    "good": {"command": "y", "__proto__": {"env": {"A": "b"}}},
    "bad": {"command": "z", "env": {"__proto__": "x"}}
  }}`;
  await using ws = await makeWorkspace({ files: { ".mcp.json": mcp } });
  const { stdout } = await runPml(ws, ["import", ".mcp.json", "--json"]);
  const { take, skip, problems } = JSON.parse(stdout);
  assert.deepEqual(problems, []);
  assert.deepEqual(
    take.map((one: Record<string, unknown>) => [one.name, one.definition, one.left]),
    [["good", { command: "y" }, [{ key: "__proto__", why: "PML has no such setting" }]]],
  );
  assert.deepEqual(skip.map(({ name }: Record<string, string>) => name), ["__proto__", "bad"]);
  assert.match(skip[1].why, /\benv\b/);
});

Deno.test("a file that ends too early is reported once, with any number of open brackets", async () => {
  const text = `{"version": 1, "mcpServers": {"a": {"args": ["x"`;
  await using ws = await makeWorkspace({ files: { ".mcp.json": text }, pml: text });
  const imported = await runPml(ws, ["import", ".mcp.json"], { env: { PML_TRUST: "" } });
  const listed = await runPml(ws, ["list"]);
  for (const { stdout, stderr } of [imported, listed]) {
    assert.equal((stdout + stderr).match(/invalid JSON/g)?.length, 1, stdout + stderr);
  }
});
