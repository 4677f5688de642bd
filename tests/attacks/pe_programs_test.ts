import assert from "node:assert/strict";
import { chmod, readFile } from "node:fs/promises";
import { confinedArgs } from "../../src/servers/stdio/_confined_access.ts";
import { tinyServer } from "../kit/tiny_server.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const SERVER = tinyServer('"as it was"');
const FILES = {
  "server.js": SERVER,
  "run.sh": '#!/bin/sh\nexec node "$(dirname "$0")/server.js"\n',
  "tools/mcp.mjs": `import "node:fs";\n`,
  "other.js": "// nobody runs this\n",
};
const SERVERS = {
  own: { command: "node", args: ["server.js"] },
  script: { command: "./run.sh" },
  module: { command: "node", args: ["--require=./tools/mcp.mjs", "./tools/new.cjs"] },
};

Deno.test("no module writes the files that a server of the workspace runs (PE11)", async () => {
  await using scene = await makeScene({
    era: "2025-11-25",
    files: FILES,
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "own:*", "script:*"] },
      mcpServers: SERVERS,
    },
    prepare: async (ws) => {
      await chmod(ws.file("run.sh"), 0o755);
    },
  });
  const { ws, pml } = scene;
  const call = async (tool: string, args: object) =>
    textOf(await pml.callTool("call", { tool, arguments: args }));
  for (
    const path of ["server.js", "run.sh", "./tools/../Server.JS", "tools/mcp.mjs"]
  ) {
    const text = await call("filesystem:write_file", { path, content: "planted" });
    assert.match(text, /PATH_PROTECTED/, path);
  }
  const made = await call("filesystem:write_file", { path: "tools/new.cjs", content: "planted" });
  assert.match(made, /PATH_PROTECTED/);
  for (const [source, destination] of [["server.js", "away"], ["other.js", "server.js"]]) {
    assert.match(
      await call("filesystem:move_file", { source, destination }),
      /PROTECTED|EXISTS/i,
    );
  }
  assert.match(await call("filesystem:write_file", { path: "other.js", content: "x" }), /Wrote/);
  for (const name of ["own", "script"]) {
    assert.equal(await call(`${name}:tell`, {}), JSON.stringify("as it was"));
  }
  assert.equal(await readFile(ws.file("server.js"), "utf8"), SERVER);
  await endWell(ws, pml);
});

Deno.test("a confined server writes no file that another one runs", () => {
  const args = confinedArgs({
    ...{ name: "s", folder: "/home/p/servers/s", workspace: "/", home: "/home/p", grants: {} },
    ...{ hasSystemLayer: true, certificates: [] },
    protection: { readProtected: [], writeProtected: [], paths: ["/ws/server.js"] },
  });
  const denied = args.find((one) => one.startsWith("--deny-write="))?.split(/[=,]/);
  assert.ok(denied?.includes("/ws/server.js"), `${args}`);
});
