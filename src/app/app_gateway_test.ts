/**
 * The notes of clients are few, whatever clients call themselves.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { makeWorkspace } from "../../tests/kit/workspace.ts";
import type { App } from "./app.ts";
import { ClientNotes } from "./app_gateway.ts";

Deno.test("ten thousand client names, and huge ones, leave one small file, written at the end", async () => {
  await using ws = await makeWorkspace();
  const path = join(ws.home, "clients.json");
  const app = {
    config: () => ({ home: ws.home, problem: undefined }),
    log: { debug: () => assert.fail("not recorded") },
  };
  {
    await using notes = new ClientNotes(app as unknown as App);
    for (let at = 0; at < 10_000; at++) notes.note({ name: `client ${at}`, version: "1" }, {});
    notes.note({ name: "n".repeat(10_000_000), version: "v".repeat(10_000_000) }, {});
    notes.note({ name: "" }, {});
    notes.note({ name: { toString: "x" }, version: ["1"] } as never, {});
    // Nothing is written before the first answers.
    await assert.rejects(Deno.stat(path), Deno.errors.NotFound);
  }
  const { clients } = JSON.parse(await Deno.readTextFile(path));
  assert.equal(clients.length, 50);
  assert.ok((await Deno.stat(path)).size < 20_000);
});
