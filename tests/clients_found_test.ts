/**
 * Published clients: the Inspector's command line, mcporter, mcp-cli and the official SDK's client;
 * and an authorization server. npm installs them, and a newer Node if the current one is too old.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeAttackWorkspace } from "./attacks/stage.ts";
import { signInThere } from "./clients_oauth.ts";
import { useOverStdio } from "./clients_stdio.ts";
import { installedClients, runClient } from "./kit/found_clients.ts";
import { servePml, type TestServer } from "./kit/pml_serve.ts";
import type { Workspace } from "./kit/workspace.ts";

const READ = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
const HELLO = [{ type: "text", text: "hello" }];

interface At {
  readonly served: TestServer;
  readonly ws: Workspace;
  /** The program and its first arguments. */
  readonly start: readonly string[];
}

async function inspect({ served, ws, start }: At): Promise<void> {
  const to = ["--cli", served.url, "--transport", "http"];
  const ask = (token: string, args: readonly string[]) =>
    runClient([...start, ...to, "--header", `Authorization: Bearer ${token}`, ...args], {
      cwd: ws.root,
    });
  const listed = await ask(served.token, ["--method", "tools/list"]);
  assert.equal(listed.code, 0, listed.stderr);
  const { tools } = JSON.parse(listed.stdout) as { tools: readonly { name: string }[] };
  assert.ok(tools.some(({ name }) => name === "call"), listed.stdout);
  const args = ["--tool-arg", `tool=${READ.tool}`];
  const more = ["--tool-arg", `arguments=${JSON.stringify(READ.arguments)}`];
  const call = ["--method", "tools/call", "--tool-name", "call", ...args, ...more];
  const called = await ask(served.token, call);
  assert.deepEqual(JSON.parse(called.stdout).content, HELLO, called.stderr);
  assert.notEqual((await ask("wrong", call)).code, 0);
}

async function port({ served, ws, start }: At): Promise<void> {
  const config = `${ws.root}/mcporter.json`;
  const headers = { Authorization: "Bearer ${PML_TOKEN}" };
  await Deno.writeTextFile(
    config,
    JSON.stringify({ mcpServers: { pml: { url: served.url, headers } } }),
  );
  const ask = (token: string, args: readonly string[]) =>
    runClient([...start, "--config", config, ...args], {
      cwd: ws.root,
      env: { HOME: ws.root, PML_TOKEN: token },
    });
  const listed = await ask(served.token, ["list", "pml", "--json"]);
  assert.equal(listed.code, 0, listed.stderr);
  const { tools } = JSON.parse(listed.stdout) as { tools: readonly { name: string }[] };
  assert.ok(tools.some(({ name }) => name === "call"), listed.stdout);
  const call = ["call", "pml.call", "--args", JSON.stringify(READ), "--output", "json"];
  const called = await ask(served.token, call);
  assert.deepEqual(JSON.parse(called.stdout).content, HELLO, called.stderr);
  assert.notEqual((await ask("wrong", call)).code, 0);
}

Deno.test("published clients use pml serve and pml stdio", async (t) => {
  await using ws = await makeAttackWorkspace({ files: { "a.txt": "hello" } });
  await using served = await servePml(ws);
  const folder = `${ws.root}/clients`;
  await Deno.mkdir(folder);
  const clients = await installedClients(folder);
  const { start } = clients;
  await t.step("the Inspector", () => inspect({ served, ws, start: start("mcp-inspector") }));
  await t.step("mcporter", () => port({ served, ws, start: start("mcporter") }));
  await useOverStdio(t, clients);
  await t.step("an authorization server of oidc-provider", () => signInThere(clients));
});
