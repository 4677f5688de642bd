import assert from "node:assert/strict";
import { join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace, writeFiles } from "./kit/workspace.ts";

const W = "${workspaceFolder}";
const SERVER = tinyServer(
  "({ cwd: process.cwd(), args: process.argv.slice(2), env: process.env })",
);

interface Told {
  readonly cwd: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function told(ws: Workspace, server: string): Promise<Told> {
  const result = await runPml(ws, ["call", `${server}:tell`, "--json"]);
  assert.equal(result.code, 0, result.stderr);
  return JSON.parse(JSON.parse(result.stdout).content[0].text);
}

function allowed(mcpServers: object): object {
  const allow = Object.keys(mcpServers).map((name) => `${name}:*`);
  return { version: 1, permissions: { allow }, mcpServers };
}

Deno.test("folder variables are filled in for programs, and the program fills in its own env", async () => {
  const mcpServers = {
    own: {
      command: "node",
      args: [
        `${W}/tools/server.cjs`,
        "${userHome}",
        "${workspaceFolderBasename}",
        "${KEY}",
        "Hi ${you}",
      ],
      cwd: `${W}/tools`,
      env: { KEY: "${SECRET}", FILE: `${W}/data/${"${KEY}"}` },
    },
  };
  await using ws = await makeWorkspace({
    files: { "tools/server.cjs": SERVER },
    pml: { ...allowed(mcpServers) },
    env: { SECRET: "s" },
  });
  const real = await Deno.realPath(ws.path);
  const { cwd, args, env } = await told(ws, "own");
  assert.equal(cwd, join(real, "tools"));
  assert.deepEqual(args.slice(1), [real.split("/").at(-1), "${KEY}", "Hi ${you}"]);
  assert.deepEqual([env.KEY, env.FILE], ["s", join(real, "data", "s")]);
});

Deno.test("a server of the user's file runs files of a workspace only if that is trusted (P5)", async () => {
  const mcpServers = {
    script: { command: "node", args: [`${W}/server.cjs`] },
    folder: { command: "node", args: ["server.cjs"], cwd: W },
    data: { command: "node", args: ["SERVER", W] },
  };
  await using ws = await makeWorkspace({
    files: { "server.cjs": `require("node:fs").writeFileSync(process.env.MARK ?? "mark", "ran");` },
  });
  const own = join(ws.root, "own.cjs");
  await writeFiles(ws.root, { "own.cjs": SERVER });
  const all = JSON.stringify(allowed(mcpServers)).replace("SERVER", own).replace(
    '"version":1,',
    "",
  );
  await Deno.writeTextFile(join(ws.home, "config.yaml"), all);
  for (const name of ["script", "folder"]) {
    const result = await runPml(ws, ["call", `${name}:tell`]);
    assertError(result, { code: "WORKSPACE_UNTRUSTED", exit: 1 });
    assert.match(result.stderr, /workspace ".*", .*not trusted/);
  }
  const listed = await runPml(ws, ["tools", "--json"]);
  assert.equal(listed.code, 0, listed.stderr);
  await assert.rejects(Deno.stat(ws.file("mark")), Deno.errors.NotFound);
  assert.deepEqual((await told(ws, "data")).args, [await Deno.realPath(ws.path)]);
});

Deno.test("a server gets the variables of its envFile, and a new name in the file asks the user", async () => {
  const mcpServers = {
    own: {
      command: "node",
      args: [`${W}/server.cjs`],
      env: { B: "of the definition" },
      envFile: `${W}/vars`,
    },
  };
  await using ws = await makeWorkspace({
    files: { "server.cjs": SERVER, vars: "export A_KEY='of the file'\nB=x\n" },
    pml: { ...allowed(mcpServers) },
  });
  const { env } = await told(ws, "own");
  assert.deepEqual([env.A_KEY, env.B], ["of the file", "of the definition"]);
  await Deno.writeTextFile(ws.file("vars"), "A_KEY=another\nB=x\n");
  assert.equal((await told(ws, "own")).env.A_KEY, "another", "values are read at each start");
  await Deno.writeTextFile(ws.file("vars"), "A_KEY=another\nB=x\nC_KEY=new\n");
  const result = await runPml(ws, ["call", "own:tell"]);
  assertError(result, { code: "APPROVAL_STALE", exit: 1 });
  assert.match(result.stderr, /C_KEY/);
  assert.doesNotMatch(result.stderr, /another|new/);
});

Deno.test("a server whose envFile cannot be used fails alone, with the path and the reason", async () => {
  const mcpServers = Object.fromEntries(
    ["none", "long", "steering", "own"].map((name) =>
      [name, { command: "node", args: [`${W}/server.cjs`], envFile: `vars/${name}` }] as const
    ),
  );
  await using ws = await makeWorkspace({
    files: {
      "server.cjs": SERVER,
      "vars/long": `A=${"x".repeat(70_000)}`,
      "vars/steering": "A=b\nNODE_OPTIONS=--import=/tmp/x.mjs\n",
      "vars/own": "A=b\nPML_HOME=/tmp\n",
    },
    pml: { ...allowed({ ...mcpServers, fine: { command: "node", args: [`${W}/server.cjs`] } }) },
  });
  const reasons = {
    none: /vars\/none" .*no such file/,
    long: /vars\/long" cannot be read: .*64 KB|vars\/long" cannot be read: .*65/,
    steering: /vars\/steering" .*NODE_OPTIONS, /,
    own: /vars\/own" .*PML_HOME, /,
  };
  for (const [name, reason] of Object.entries(reasons)) {
    const result = await runPml(ws, ["call", `${name}:tell`]);
    assertError(result, { code: "CONFIG_INVALID", exit: 2 });
    assert.match(result.stderr, reason);
  }
  await told(ws, "fine");
});
