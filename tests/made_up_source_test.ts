/**
 * A made-up source of servers. It needed these files: `tests/kit/made_up_source.ts`, and one line
 * in the table, `src/servers/sources.ts`. The line below replaces that line. Its place in the table
 * is its precedence.
 *
 * @module
 */

import assert from "node:assert/strict";
import type { SourceClass } from "../src/servers/source.ts";
import { SOURCES } from "../src/servers/sources.ts";
import { ShelfSource } from "./kit/made_up_source.ts";

(SOURCES as SourceClass[]).push(ShelfSource);

const { CallPathStage } = await import("../src/app/_call_path_stage_test.ts");

Deno.test("a server of a made-up source is found, asked about and called", async () => {
  await using stage = await CallPathStage.open({ pml: { permissions: { allow: ["poet:*"] } } });
  const { origin, kind } = stage.directory.get("poet");
  assert.deepEqual([origin.name, kind], ["shelf", "deno"]);
  const outcome = await stage.call("poet", "recite");
  assert.ok(outcome.kind === "ask");
  const { handle, text } = outcome.question;
  assert.match(text, /Yes lets PML use the shelf/);
  const answer = { handle, reply: "Yes" } as const;
  const recited = await stage.call("poet", "recite", { answer });
  assert.ok(recited.kind === "result");
  assert.deepEqual(recited.result.content, [{ type: "text", text: "roses are red" }]);
  assert.equal((await stage.call("poet", "recite")).kind, "result");
});

Deno.test("a source after the files cannot replace their servers", async () => {
  const own = { type: "http", url: "https://poet.example/mcp" };
  await using stage = await CallPathStage.open({ pml: { mcpServers: { poet: own } } });
  const { origin, kind } = stage.directory.get("poet");
  assert.deepEqual([origin.name, kind], ["private", "http"]);
});
