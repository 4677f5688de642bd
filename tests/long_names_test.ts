/**
 * The names of listed tools, with the characters that models' APIs allow or those that MCP allows.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { makeScene } from "./attacks/stage.ts";
import { listed } from "./full_scene.ts";
import { definitions, filesOf } from "./said_scene.ts";

const NAMES = ["files.read", "x".repeat(90), "y".repeat(128), "plain"];
const RESULT = { result: { content: [{ type: "text", text: "done" }] } };
const tools = NAMES.map((name) => ({ name, inputSchema: { type: "object" } }));
const TABLES = { s: { "tools/list": { result: { tools } }, "tools/call": RESULT } };

Deno.test("long_names keeps dots and 128 characters in names of tools", async () => {
  for (const long of [true, false]) {
    await using scene = await makeScene({
      era: "2026-07-28",
      files: filesOf(TABLES),
      pml: {
        version: 1,
        gateway: { tools_exposure: "full_proxy", long_names: long },
        permissions: { allow: ["s:*"] },
        mcpServers: definitions(TABLES),
      },
      limits: { first_list_ms: 60_000 },
    });
    const all = await listed(scene.pml, "tools/list", { key: "tools" });
    const own = all.map(({ name }) => String(name)).filter((name) => name.startsWith("s__"));
    assert.equal(own.length, NAMES.length);
    for (const name of own) {
      assert.match(name, long ? /^[\w.-]{1,128}$/ : /^[\w-]{1,64}$/);
      assert.equal(textOf(await scene.pml.callTool(name, {})), "done", name);
    }
    const isKept = [own.includes("s__files.read"), own.includes(`s__${"x".repeat(90)}`)];
    assert.deepEqual(isKept, [long, long]);
    // With its server's name it is longer than MCP allows.
    assert.ok(!own.includes(`s__${"y".repeat(128)}`) && own.includes("s__plain"));
  }
});
