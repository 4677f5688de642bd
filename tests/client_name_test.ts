/**
 * The name and the experimental capabilities of a client, as servers get them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { CLIENT_INFO, ERAS, type Json } from "./kit/json_rpc.ts";
import { EXTENSION, TRIAL } from "./kit/members_server.ts";
import { denoCommand } from "./kit/pml_command.ts";
import { RawStdio, WAYS } from "./kit/raw_stdio.ts";
import { writeConfig } from "./script_scene.ts";

const [COMMAND, ...ARGS] = denoCommand("tests/kit/members_server.ts");
const EXPERIMENTAL = { "x.test/trial": { level: 2 } };
const CLIENT = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

/** Returns a workspace with the server. */
async function stage(isModern: boolean) {
  const m = { command: COMMAND, args: [...ARGS, ...isModern ? ["--modern"] : []] };
  const permissions = { allow: ["m:*"] };
  return await makeAttackWorkspace({ pml: { version: 1, permissions, mcpServers: { m } } });
}

/** Returns the name and the capabilities that the server got. */
async function seenBy(pml: RawStdio) {
  const { result } = await pml.callTool("m__heard");
  const greeting = result?.greeting as Json | undefined;
  const meta = (result?.got as Json | undefined)?._meta as Json | undefined;
  const { name } = (greeting?.clientInfo ?? meta?.[CLIENT]) as Json;
  const { experimental } = (greeting?.capabilities ?? meta?.[CAPABILITIES]) as Json;
  return { name, experimental };
}

for (const way of WAYS) {
  for (const isModern of [false, true]) {
    const revision = isModern ? "2026-07-28" : "2025-11-25";
    Deno.test(`a server, ${revision}, gets the name and experimental capabilities of a client, ${way.on}`, async () => {
      await using ws = await stage(isModern);
      await using pml = new RawStdio(ws, { ...way, capabilities: { experimental: EXPERIMENTAL } });
      await pml.open();
      const expected = { name: CLIENT_INFO.name, experimental: EXPERIMENTAL };
      assert.deepEqual(await seenBy(pml), expected);
    });
  }
}

for (const isModern of [false, true]) {
  const revision = isModern ? "2026-07-28" : "2025-11-25";
  Deno.test(`with client_name: false, a server, ${revision}, gets the name of PML`, async () => {
    await using ws = await stage(isModern);
    await writeConfig(ws, { client_name: false });
    await using pml = new RawStdio(ws);
    await pml.open();
    assert.equal((await seenBy(pml)).name, "pml");
  });
}

for (const era of ERAS) {
  for (const isModern of [false, true]) {
    const revision = isModern ? "2026-07-28" : "2025-11-25";
    Deno.test(`a client, ${era}, gets the declarations of the last start of a server, ${revision}`, async () => {
      await using ws = await stage(isModern);
      const greeted = async (door: "stdio" | "http") => {
        await using pml = new RawStdio(ws, { era, door });
        const { result } = await pml.open();
        await pml.callTool("m__heard");
        const { experimental, extensions } = result?.capabilities ?? {};
        return [experimental, extensions?.[EXTENSION]];
      };
      assert.deepEqual(await greeted("stdio"), [undefined, undefined]);
      assert.deepEqual(await greeted("stdio"), [TRIAL, { level: 1 }]);
      assert.deepEqual(
        await greeted("http"),
        [undefined, undefined],
        "it may have several clients",
      );
      await Deno.writeTextFile(ws.file(".pml.json"), JSON.stringify({ version: 1 }));
      assert.deepEqual(await greeted("stdio"), [undefined, undefined], "the server is gone");
    });
  }
}
