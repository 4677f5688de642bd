/**
 * A server in the user's own file starts in any open workspace, which may be a clone: files of the
 * clone are not used as parts of the server.
 *
 * @module
 */

import assert from "node:assert/strict";
import process from "node:process";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { RawStdio } from "../kit/raw_stdio.ts";
import { tinyServer } from "../kit/tiny_server.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeAttackWorkspace } from "./stage.ts";

const SERVER = tinyServer("process.cwd()");
const PLANTED = `require("node:fs").writeFileSync(${"process.env.MARK"}, "planted ran");`;
/** Files of a clone that node and npm would run. */
const CLONE = {
  "node_modules/tsx/package.json": '{"name":"tsx","version":"1.0.0","main":"index.js"}',
  "node_modules/tsx/index.js": PLANTED,
  "package.json": '{"name":"clone","version":"1.0.0","scripts":{"mcp":"node node_modules/tsx"}}',
  "server.js": PLANTED,
};

Deno.test("a clone adds nothing to the user's own servers (P5)", async () => {
  await using ws = await makeAttackWorkspace({ files: CLONE, pml: "{}", trusted: false });
  const [own, mark] = [join(ws.root, "own"), join(ws.root, "planted")];
  const [good, runner] = [join(own, "good.js"), join(own, "python3")];
  await mkdir(own);
  await writeFile(good, SERVER);
  // It runs the server, also where PML prevents that it runs files of its folder.
  await writeFile(runner, `#!/bin/sh\nexec node ${good}\n`);
  await chmod(runner, 0o755);
  const elsewhere = {
    loader: ["node", "--import", "tsx", good],
    relative: ["node", "server.js"],
    script: ["npm", "run", "mcp"],
    line: ["sh", "-c", `timeout 60 ${runner} -m mcp_server_git`],
    module: [runner, "-m", "mcp_server_git"],
  };
  const inside = { script_of_own: ["node", good], program: [join(own, "python3"), good] };
  const mcpServers = Object.fromEntries(
    Object.entries({ ...elsewhere, ...inside }).map(([name, [command, ...args]]) =>
      [name, { command, args, env: { MARK: mark } }] as const
    ),
  );
  const allow = Object.keys(mcpServers).map((name) => `${name}:*`);
  const named = { command: "node", args: ["--no-warnings", good], cwd: ws.path };
  await writeFile(
    join(ws.home, "config.yaml"),
    JSON.stringify({
      permissions: { allow: [...allow, "named:*"] },
      mcpServers: { ...mcpServers, named },
    }),
  );
  await using pml = new RawStdio(ws, { era: "2026-07-28", env: { PATH: `${process.env.PATH}` } });
  await pml.open();
  const where = async (name: string) =>
    textOf(await pml.callTool("call", { tool: `${name}:tell`, arguments: {} }));
  const all = Object.keys(elsewhere).map(async (name) => [name, await where(name)] as const);
  const said = Object.fromEntries(await Promise.all(all));
  await assert.rejects(Deno.stat(mark), `what the clone brings ran: ${JSON.stringify(said)}`);
  for (const name of ["line", "module"]) {
    assert.match(said[name] ?? "", new RegExp(`/data/[0-9a-f]{32}/${name}"$`));
  }
  // A server that uses no file of its folder, or has its own folder, starts there.
  for (const name of [...Object.keys(inside), "named"]) {
    assert.equal(await where(name), JSON.stringify(await Deno.realPath(ws.path)), name);
  }
  await endWell(ws, pml);
});

Deno.test("a server of a trusted file starts in the workspace, with any command", async () => {
  const own = { command: "node", args: ["server.js"] };
  await using ws = await makeAttackWorkspace({
    files: { "server.js": SERVER },
    pml: { version: 1, permissions: { allow: ["own:*", "filesystem:*"] }, mcpServers: { own } },
  });
  await using pml = new RawStdio(ws);
  await pml.open();
  const answer = await pml.callTool("call", { tool: "own:tell", arguments: {} });
  assert.equal(textOf(answer), JSON.stringify(await Deno.realPath(ws.path)));
  await endWell(ws, pml);
});
