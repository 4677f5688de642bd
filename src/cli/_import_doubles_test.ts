import assert from "node:assert/strict";
import { doubleOf } from "./_import_doubles.ts";

Deno.test("doubleOf() finds the program of a built-in server, and no package with a name like it", () => {
  const of = (command: string, ...args: readonly string[]) =>
    doubleOf({ definition: { command, args } });
  assert.equal(
    of("npx", "-y", "@modelcontextprotocol/server-filesystem@2025.1.1", "/"),
    "filesystem",
  );
  assert.equal(of("uvx", "mcp-server-git"), "git");
  assert.equal(of("/usr/bin/mcp-server-sqlite", "--db-path", "a.db"), "sqlite");
  assert.equal(of("npx", "mcp-server-git-other"), undefined);
  assert.equal(of("npx", "@other/mcp-server-filesystem"), undefined);
});
