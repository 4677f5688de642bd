/**
 * The error -32042 of servers: clients that can open a page are asked, others get the address.
 *
 * @module
 */

import assert from "node:assert/strict";
import { textOf } from "./attacks/oracles.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { connect } from "./kit/client.ts";
import { type Said, scriptScene, scriptServer } from "./script_scene.ts";

const ADDRESS = "https://example.com/sign-in?token=abc";
const FINISHED = {
  jsonrpc: "2.0",
  method: "notifications/elicitation/complete",
  params: { elicitationId: "e1" },
};
const data = {
  elicitations: [{ mode: "url", elicitationId: "e1", url: ADDRESS, message: "Sign in" }],
};
const error = { code: -32042, message: "Sign in first", data };
const answer = (members: object) => JSON.stringify({ jsonrpc: "2.0", id: "$ID", ...members });
const PAGE: Said = {
  silent: true,
  steps: [
    { write: JSON.stringify(FINISHED) },
    { write: answer({ error }).replace('"$ID"', "$ID") },
  ],
};

for (const era of ["2025-11-25", "2026-07-28"] as const) {
  Deno.test(`a client that can open pages is asked for those that a server requires, on ${era}`, async () => {
    await using ws = await makeAttackWorkspace({
      files: { ledger: "" },
      pml: {
        version: 1,
        permissions: { allow: ["s:*"] },
        gateway: { tools_exposure: "full_proxy" },
        mcpServers: { s: scriptServer() },
      },
    });
    const seen: unknown[] = [];
    let action: "accept" | "decline" = "accept";
    await using connection = await connect(ws, {
      era,
      capabilities: { elicitation: { url: {} } },
      elicit: (params) => {
        seen.push(params);
        return { action };
      },
    });
    const { client } = connection;
    const call = async () => {
      const { content } = await client.callTool({ name: "s__run", arguments: { ...PAGE } });
      return (content as readonly { readonly text: string }[])[0]?.text ?? "";
    };
    for (action of ["accept", "accept", "decline"] as const) {
      const before = await Deno.readTextFile(ws.file("ledger"));
      // The server answers again with the error, and the model gets the address.
      assert.match(
        await call(),
        /error -32042: Sign in first\n.*: https:.*token=abc \("Sign in"\)/,
      );
      const [asked, ...more] = seen.splice(0);
      assert.equal(more.length, 0);
      const { url, message } = asked as { readonly url: string; readonly message: string };
      assert.equal(url, ADDRESS);
      assert.match(message, /^Server s .*: Sign in$/);
      const ledger = (await Deno.readTextFile(ws.file("ledger"))).slice(before.length);
      const calls = ledger.split("\n").filter((line) => line.startsWith("call"));
      assert.equal(calls.length, action === "accept" ? 2 : 1, ledger);
    }
    await client.close();
  });
}

Deno.test("a client that cannot open pages gets the address as text", async () => {
  await using scene = await scriptScene("2025-11-25");
  for (const ask of [scene.call, scene.callWithMeta]) {
    const text = textOf(await ask(PAGE));
    assert.match(text, /error -32042: Sign in first\n.*: https:.*token=abc \("Sign in"\)/);
  }
});
