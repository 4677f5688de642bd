/**
 * Clients as people find them, with the token of `pml serve`: the Inspector's command line and
 * mcporter. npm installs them, and a Node if the present one is too old.
 *
 * @module
 */

import assert from "node:assert/strict";
import { makeScenery } from "./attacks/stage.ts";
import { type Served, servePml } from "./kit/pml_serve.ts";
import type { Workspace } from "./kit/workspace.ts";

const CLIENTS = ["@modelcontextprotocol/inspector@2.12.0", "mcporter@0.12.3"];
/** The Node that they need, and the one that npm installs where the present one is older. */
const [LEAST, NODE] = [24, "node@24.21.0"];
const READ = { tool: "filesystem:read_file", arguments: { path: "a.txt" } };
const HELLO = [{ type: "text", text: "hello" }];

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  [program = "", ...args]: readonly string[],
  { cwd, env = {} }: { readonly cwd: string; readonly env?: Readonly<Record<string, string>> },
): Promise<Said> {
  const command = new Deno.Command(program, { args, cwd, env, stdin: "null" });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

/** Installs the clients. Returns how to start one. */
async function installed(folder: string): Promise<(name: string) => readonly string[]> {
  await Deno.writeTextFile(`${folder}/package.json`, `{"private": true}`);
  const { stdout } = await run(["node", "--version"], { cwd: folder });
  const isOld = !(Number(/^v(\d+)/.exec(stdout)?.[1]) >= LEAST);
  const wanted = isOld ? [...CLIENTS, NODE] : CLIENTS;
  const how = ["--no-audit", "--no-fund", "--loglevel=error", "--prefer-offline"];
  const { code, stderr } = await run(["npm", "install", ...how, ...wanted], { cwd: folder });
  assert.equal(code, 0, stderr);
  const bin = `${folder}/node_modules/.bin`;
  return (name) => [isOld ? `${bin}/node` : "node", `${bin}/${name}`];
}

interface At {
  readonly served: Served;
  readonly ws: Workspace;
  /** The program and its first arguments. */
  readonly start: readonly string[];
}

async function inspect({ served, ws, start }: At): Promise<void> {
  const to = ["--cli", served.url, "--transport", "http"];
  const ask = (token: string, args: readonly string[]) =>
    run([...start, ...to, "--header", `Authorization: Bearer ${token}`, ...args], { cwd: ws.root });
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
    run([...start, "--config", config, ...args], {
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

Deno.test("The Inspector's command line and mcporter list and call tools of pml serve", async (t) => {
  await using ws = await makeScenery({ files: { "a.txt": "hello" } });
  await using served = await servePml(ws);
  const folder = `${ws.root}/clients`;
  await Deno.mkdir(folder);
  const start = await installed(folder);
  await t.step("the Inspector", () => inspect({ served, ws, start: start("mcp-inspector") }));
  await t.step("mcporter", () => port({ served, ws, start: start("mcporter") }));
});
