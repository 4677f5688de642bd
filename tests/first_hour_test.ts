/**
 * What a newcomer types in the first hour, also wrongly: each answer says what to do next.
 *
 * @module
 */

import assert from "node:assert/strict";
import { assertError } from "./cli_greeter.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";

const IN_PROJECT = { files: { "package.json": "{}", "README.md": "hello\n" } };

Deno.test("A key that is missing is told with the command that keeps it", async () => {
  await using ws = await makeWorkspace({
    pml: { mcpServers: { far: { url: "http://127.0.0.1:9/mcp", headers: { X: "${FAR_KEY}" } } } },
  });
  const ran = await runPml(ws, ["tools", "far"]);
  assertError(ran, { code: "KEY_MISSING", exit: 1 });
  assert.match(ran.stderr, /`pml key set FAR_KEY`.*headers\.X\n/s);
});
