/**
 * The name and the version of this server that clients receive, as the configuration sets them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Era, ERAS } from "./kit/json_rpc.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { makeWorkspace, type Workspace, type WorkspaceOptions } from "./kit/workspace.ts";

const PML = { version: 1, gateway: { name: "Acme tools", version: "2026.11" } };
const OWN = { name: "mine", title: "mine", version: "7" };
const INFO = "io.modelcontextprotocol/serverInfo";

async function workspaceOf(options: WorkspaceOptions, person?: string): Promise<Workspace> {
  const ws = await makeWorkspace(options);
  if (person !== undefined) await writeFile(join(ws.home, "config.yaml"), person);
  return ws;
}

/** Returns the server's info that a client receives: from the handshake, or from a request. */
async function toldBy(pml: RawStdio): Promise<unknown> {
  if (pml.era !== "2025-11-25") {
    const { result } = await pml.request("server/discover", {});
    const { serverInfo = result?._meta?.[INFO] } = result ?? {};
    return serverInfo;
  }
  const { result } = await pml.request("initialize", {
    protocolVersion: pml.era,
    capabilities: {},
    clientInfo: { name: "t", version: "1" },
  });
  return result?.serverInfo;
}

/** Returns the server's info for a client of a new process. */
async function infoIn(ws: Workspace, era: Era): Promise<unknown> {
  await using pml = new RawStdio(ws, { era });
  const told = await toldBy(pml);
  await pml.close();
  return told;
}

for (const era of ERAS) {
  Deno.test(`the configuration names the server that clients see, on ${era}`, async () => {
    await using plain = await workspaceOf({ pml: { version: 1 } });
    const { version } = JSON.parse(await Deno.readTextFile("deno.json"));
    assert.deepEqual(await infoIn(plain, era), { name: "pml", title: "PML", version });
    await using ws = await workspaceOf({ pml: PML }, "gateway: { name: mine, version: '7' }\n");
    assert.deepEqual(await infoIn(ws, era), {
      name: "Acme tools",
      title: "Acme tools",
      version: "2026.11",
    });
  });
}

Deno.test("an untrusted file names no server", async () => {
  await using ws = await workspaceOf(
    { pml: PML, trusted: false },
    "gateway: { name: mine, version: '7' }\n",
  );
  assert.deepEqual(await infoIn(ws, "2026-07-28"), OWN);
});

Deno.test("an invalid name is reported with file, key, found and wanted", async () => {
  await using ws = await workspaceOf({ pml: { version: 1, gateway: { name: 7 } } });
  await using pml = new RawStdio(ws, { era: "2025-11-25" });
  await pml.open();
  const { result } = await pml.callTool("search", { query: "x" });
  const { code, message: said } = result?.structuredContent?.error ?? {};
  assert.equal(code, "CONFIG_INVALID");
  const message = String(said);
  for (const part of [".pml.json", "gateway.name", "7 (a number)", "1 to 128 visible"]) {
    assert.ok(message.includes(part), message);
  }
  await pml.close();
});

Deno.test("pml config show prints the name, the version, and their sources", async () => {
  await using ws = await workspaceOf({ pml: { version: 1, gateway: { name: "Acme tools" } } });
  const { values } = JSON.parse((await runPml(ws, ["config", "show", "--json"])).stdout);
  assert.deepEqual(values["gateway.name"], { value: "Acme tools", from: ws.file(".pml.json") });
  assert.equal(values["gateway.version"].from, "default");
});
