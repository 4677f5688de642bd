/**
 * MCP Apps through PML: two servers with the same page and the same tool, between the SDK's client
 * and server, in both revisions and in exposures with and without the tools of servers.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { connect } from "./kit/client.ts";
import { ERAS } from "./kit/json_rpc.ts";
import { runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace } from "./kit/workspace.ts";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { repoFile } from "./kit/pml_command.ts";

const APPS = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };

function argsOf(name: string): readonly string[] {
  const script = repoFile("tests/kit/app_server.ts");
  return ["run", "-A", "--quiet", `--config=${repoFile("deno.json")}`, script, name];
}

function appServer(name: string): object {
  // The tests use one cache of Deno.
  return { command: process.execPath, args: argsOf(name), env: { DENO_DIR: "${DENO_DIR}" } };
}

const WIDE = { allow: ["a:*", "b:*"] };

async function workspaceWith(exposure: string) {
  return await makeAttackWorkspace({
    pml: {
      version: 1,
      permissions: WIDE,
      mcpServers: { a: appServer("a"), b: appServer("b") },
      gateway: { tools_exposure: exposure },
    },
    limits: { first_list_ms: 60_000 },
  });
}

for (const era of ERAS) {
  for (const exposure of ["full_proxy", "meta_only"]) {
    Deno.test(`two servers with the same page both show theirs, with ${exposure} on ${era}`, async () => {
      await using ws = await workspaceWith(exposure);
      await using connection = await connect(ws, { era, capabilities: { extensions: APPS } });
      const { client } = connection;
      const { tools } = await client.listTools();
      for (const name of ["a", "b"]) {
        const uri = `ui://${name}/get-time/app.html`;
        const tool = tools.find((one) => one.name === `${name}__get-time`);
        assert.deepEqual(tool?._meta, { ui: { resourceUri: uri }, "ui/resourceUri": uri });
        assert.ok(tools.some((one) => one.name === `${name}__poll-${name}`));
        const { contents } = await client.readResource({ uri });
        const ui = { csp: { connectDomains: ["https://example.com"] } };
        const mimeType = "text/html;profile=mcp-app";
        assert.deepEqual(contents, [{ uri, mimeType, text: `<p>${name}</p>`, _meta: { ui } }]);
        const result = await client.callTool({ name: `${name}__get-time`, arguments: {} });
        assert.deepEqual(result.content, [
          { type: "text", text: `It is now at ${name}` },
          { type: "resource_link", uri, name: "page" },
        ]);
        const { _meta: { ui: page, "x/kept": kept } = {} } = result;
        assert.deepEqual([page, kept], [{ resourceUri: uri }, 1]);
        // The call of a page.
        const polled = await client.callTool({ name: `poll-${name}`, arguments: {} });
        assert.deepEqual(polled.content, [{ type: "text", text: `polled at ${name}` }]);
      }
      const { resources } = await client.listResources();
      const uris = resources.map(({ uri }) => uri).filter((uri) => uri.startsWith("ui:"));
      assert.deepEqual(uris, ["ui://a/get-time/app.html", "ui://b/get-time/app.html"]);
      await assert.rejects(
        client.readResource({ uri: "ui://get-time/app.html" }),
        /several servers have it\. .*ui:\/\/a\/.* or .*ui:\/\/b\//,
      );
      await assert.rejects(
        client.callTool({ name: "get-time", arguments: {} }),
        /servers with pages .*: "a:get-time", "b:get-time"/,
      );
    });
  }

  Deno.test(`a client without pages gets no tool for pages alone, on ${era}`, async () => {
    await using ws = await workspaceWith("full_proxy");
    await using connection = await connect(ws, { era });
    const { tools } = await connection.client.listTools();
    const names = tools.map(({ name }) => name).filter((name) => /^[ab]__/.test(name));
    assert.deepEqual(names, ["a__get-time", "b__get-time"]);
  });
}

Deno.test("a page of the only server that has it is read by its own address, too", async () => {
  const pml = { version: 1, permissions: WIDE, mcpServers: { a: appServer("a") } };
  await using ws = await makeAttackWorkspace({ pml, limits: { first_list_ms: 60_000 } });
  await using connection = await connect(ws, { capabilities: { extensions: APPS } });
  const { client } = connection;
  for (const uri of ["ui://get-time/app.html", "ui://a/get-time/app.html"]) {
    const { contents: [content] } = await client.readResource({ uri });
    assert.equal(content?.uri, uri);
  }
});

Deno.test("pml add shows the tools that the pages of a server can call", async () => {
  await using ws = await makeWorkspace();
  const env = ["--env", "DENO_DIR=${DENO_DIR}"];
  const words = ["add", "a", ...env, "--", process.execPath, ...argsOf("a")];
  const added = await runPmlOnTerminal(ws, words, {
    typed: [
      ["Add a and start it?", "yes"],
      [/without the model: "get-time", "poll-a"[^]*\[y\] accept/, "y"],
    ],
  });
  assert.equal(added.code, 0, added.stdout);
});
