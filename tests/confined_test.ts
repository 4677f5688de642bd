/**
 * Confined servers: each has a data folder, and an error names the missing grant in the form in
 * which it is written into the file.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { makeScene, type Scene } from "./attacks/stage.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { type Era, ERAS } from "./kit/json_rpc.ts";
import { KeptPackages } from "./kit/kept_packages.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { runPml } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import type { Workspace } from "./kit/workspace.ts";

const MS = 60_000;
/** Writes its file as server-memory does: a new file replaces the old one. */
const KEEPS = tinyServer(`(async ({ add }) => {
  const { existsSync, readFileSync, renameSync, writeFileSync } = require("node:fs");
  const path = process.env.MEMORY_FILE_PATH ?? require("node:path").join(__dirname, "memory.jsonl");
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch {}
  if (add === undefined) return text;
  writeFileSync(path + ".a1b2.tmp", text + add);
  renameSync(path + ".a1b2.tmp", path);
  return text + add;
})(params.arguments)`);

const kept = new KeptPackages();

interface House extends AsyncDisposable, Scene {
  tell(args?: Record<string, unknown>): Promise<string>;
  /**
   * Returns the tool's answer to another PML in the same workspace, where the server has other
   * grants.
   */
  tellGranted(grants: object): Promise<string>;
}

/** Creates a PML with one confined server of a package. */
async function house(
  main: string,
  { era, env = {}, grants = {}, startMs = MS, confine = true }: {
    readonly era?: Era;
    readonly env?: Readonly<Record<string, string>>;
    readonly grants?: object;
    readonly startMs?: number;
    readonly confine?: boolean;
  } = {},
): Promise<House> {
  const npm = new FakeNpm({
    tiny: { "1.0.0": { "package.json": '{"bin":"m.js"}', "m.js": main } },
  });
  const pml = {
    version: 1,
    permissions: { allow: ["tiny:*"] },
    mcpServers: { tiny: { command: "npx", args: ["-y", "tiny"], env, confine } },
    grants: { tiny: grants },
  };
  const options = { env: { NPM_CONFIG_USERCONFIG: npm.settings }, ...era && { era } };
  const limits = { start_ms: startMs, call_ms: MS };
  const isKept = main === KEEPS;
  const prepare = (ws: Workspace) => isKept ? kept.give(ws) : Promise.resolve();
  const scene = await makeScene({ pml, limits, prepare, ...options });
  const told = async (by: RawStdio, args: Record<string, unknown>) => {
    const call = { tool: "tiny:tell", arguments: args };
    return textOf(await by.callTool("call", call, { ms: MS }));
  };
  return {
    ...scene,
    tell: (args = {}) => told(scene.pml, args),
    tellGranted: async (granted) => {
      const { ws } = scene;
      await writeFile(ws.file(".pml.json"), JSON.stringify({ ...pml, grants: { tiny: granted } }));
      await writeFile(
        join(ws.home, "config.yaml"),
        `limits: { start_ms: ${MS}, call_ms: ${MS} }\n`,
      );
      await using other = new RawStdio(ws, options);
      await other.open();
      return await told(other, {});
    },
    [Symbol.asyncDispose]: async () => {
      if (isKept) await kept.keep(scene.ws);
      await scene[Symbol.asyncDispose]();
      await npm[Symbol.asyncDispose]();
    },
  };
}

/** Returns the grants of the line to add to the file. */
function grantIn(text: string): object | undefined {
  const [, line] = /"grants": (\{"tiny":.*?\}\})/.exec(text) ?? [];
  return line === undefined ? undefined : JSON.parse(line).tiny;
}

for (const [at, confine] of [true, false].entries()) {
  const how = confine ? "confined" : "free";
  Deno.test(`a server that is ${how} stores its data in its own folder (SP1)`, async () => {
    const env = { MEMORY_FILE_PATH: "${dataFolder}/memory.jsonl" };
    const era = ERAS[at] ?? ERAS[0];
    await using one = await house(KEEPS, { env, confine, era });
    assert.equal(await one.tell({ add: "a" }), '"a"');
    assert.equal(await one.tell({ add: "b" }), '"ab"');
    const { ws, pml } = one;
    assert.equal((await pml.close()).code, 0);
    const [workspace = ""] = await readdir(join(ws.home, "data"));
    const folder = join(ws.home, "data", workspace, "tiny");
    assert.equal(await readFile(join(folder, "memory.jsonl"), "utf8"), "ab");
    for (const path of [folder, join(folder, ".."), join(ws.home, "data")]) {
      assert.equal((await stat(path)).mode & 0o777, 0o700, path);
    }
    const listed = await runPml(ws, ["call", "tiny:tell", "--args", "{}"], { ms: MS });
    assert.match(listed.stdout, /ab/, "it is there the next time");
  });
}

Deno.test("a confined server reaches no data folder except its own (SP1)", async () => {
  const reads = tinyServer(`require("node:fs").readdirSync(params.arguments.path).length`);
  await using one = await house(reads);
  const data = join(one.ws.home, "data");
  const [workspace = ""] = (await one.tell({ path: "." }), await readdir(data));
  assert.equal(await one.tell({ path: join(data, workspace, "tiny") }), "0");
  for (const path of [data, join(data, workspace), join(data, workspace, "other")]) {
    assert.match(await one.tell({ path }), /denied read access.*it belongs to PML/si, path);
  }
});

Deno.test("a confined server does not start with a variable that could remove its limits", async () => {
  for (const name of ["DENO_PERMISSION_BROKER_PATH", "Deno_Auth_Tokens", "LD_LIBRARY_PATH"]) {
    await using one = await house(KEEPS, { env: { [name]: "x", DENO_CERT: "/none.pem" } });
    assert.match(
      await one.tell(),
      new RegExp(`Cannot confine "tiny": "${name}" changes its permissions`),
    );
  }
});

Deno.test("pml learn names the variable that sets a server's folder, and the value", async () => {
  await using one = await house(KEEPS, { confine: false });
  await one.tell(); // installs the package
  const args = ["learn", "--json", "tiny", "tiny:tell", '{"add": "a"}'];
  const result = await runPml(one.ws, args, { ms: MS });
  const { env, tried, failures } = JSON.parse(result.stdout);
  assert.deepEqual(env, { MEMORY_FILE_PATH: "${dataFolder}/memory.jsonl" }, result.stdout);
  assert.deepEqual(tried, []);
  assert.match(
    failures[0],
    / \$\{dataFolder\}/,
  );
  const output = await runPml(one.ws, args.filter((arg) => arg !== "--json"), { ms: MS });
  assert.match(output.stdout, /"env": \{"MEMORY_FILE_PATH":"\$\{dataFolder\}\/memory\.jsonl"\}/);
  // Calls that were tried prove nothing about others.
  const reading = await runPml(one.ws, ["learn", "tiny", "tiny:tell"], { ms: MS });
  assert.equal(reading.code, 0, reading.stderr);
  assert.match(reading.stdout, /^It starts.*: tiny:tell\.\n/);
  const none = await runPml(one.ws, ["learn", "tiny"], { ms: MS });
  assert.match(none.stdout, /^It starts\. .*Not tried: tiny:tell\.\n/);
});

const SERVER = tinyServer("1").replace(/^#!.*\n/, "");
const NEEDS = 'require("node:fs").readFileSync(process.env.NEEDED)';
/** How a server behaves that needs a file before it can answer and may not read it. */
const STARTS: Readonly<Record<string, string>> = {
  "dies before the handshake": `${NEEDS};\n${SERVER}`,
  "dies in the handshake": SERVER.replace("rest += chunk;", `${NEEDS};\nrest += chunk;`),
  "refuses the handshake": SERVER.replace(
    "try {",
    `try { ${NEEDS}; } catch ({ message }) {
      process.stdout.write(JSON.stringify({ ...answer, error: { code: -32603, message } }) + "\\n");
      continue;
    }
    try {`,
  ),
  "says so and waits for ever": `try { ${NEEDS}; } catch (error) {
    console.error(error);
    setInterval(() => {}, 1_000);
    process.stdin.on = () => {};
  }
  ${SERVER}`,
};

for (const [at, [what, main]] of Object.entries(STARTS).entries()) {
  Deno.test(`the error names the missing grant of a confined server which ${what} (SP1)`, async () => {
    const folder = await Deno.realPath(await Deno.makeTempDir());
    const NEEDED = join(folder, "needed.txt");
    await writeFile(NEEDED, "needed");
    const env = { NEEDED };
    const startMs = what.includes("for ever") ? 8_000 : MS;
    const grants = { net: ["known.example:443"] };
    await using one = await house(main, { env, startMs, grants, era: ERAS[at % 2] ?? ERAS[0] });
    const text = await one.tell();
    assert.match(text, /^UPSTREAM_DOWN: .*denied read access/, text);
    assert.doesNotMatch(text, /does not follow/);
    const grant = grantIn(text);
    assert.deepEqual(grant, { net: ["known.example:443"], read: [NEEDED] }, text);
    await one.pml.close();
    assert.equal(await one.tellGranted(grant ?? {}), "1");
  });
}

Deno.test("a result about a denial contains the missing grant, and any other result stays as it is", async () => {
  const reads = tinyServer(`(({ path, says }) => {
    if (says !== undefined) throw new Error(says);
    return require("node:fs").readFileSync(path, "utf8");
  })(params.arguments)`);
  await using one = await house(reads);
  const { ws } = one;
  const path = join(ws.root, "elsewhere", "notes.txt");
  const text = await one.tell({ path });
  assert.match(text, /^NotCapable|Requires read access/);
  assert.deepEqual(grantIn(text), { read: ["../elsewhere/notes.txt"] }, text);
  assert.match(await one.tell({ path: ws.file(".env") }), /\.env\* is protected/);
  assert.equal(await one.tell({ says: "no" }), "no");
  const answer = await one.pml.callTool("call", { tool: "tiny:tell", arguments: { path } });
  assert.equal(codeOf(answer), undefined, "it is the server's own result");
});
