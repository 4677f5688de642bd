/**
 * Changes of two files of which the second cannot be written: nothing is lost, and the failure is
 * reported.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeKeyring } from "../kit/fake_keyring.ts";
import { FakeNpm } from "../kit/fake_npm.ts";
import { npmServer } from "../kit/npm_server.ts";
import { runPml, runPmlOnTerminal } from "../kit/run.ts";
import { makeWorkspace, type Workspace } from "../kit/workspace.ts";

const SET = ["key", "set", "SOME_KEY", "--stdin"];

/** Returns the source of the key. */
async function whence(
  ws: Workspace,
  env: Record<string, string> = {},
): Promise<string | undefined> {
  const { stdout, stderr } = await runPml(ws, ["key", "list", "--json"], { env });
  assert.doesNotMatch(stderr, /error/);
  const { keys } = JSON.parse(stdout);
  return keys.find(({ name }: { name: string }) => name === "SOME_KEY")?.from;
}

/** Runs `work` while a file of the PML home cannot be written. */
async function blocked(ws: Workspace, name: string, work: () => Promise<void>): Promise<void> {
  await mkdir(join(ws.home, name));
  await work();
  await rm(join(ws.home, name), { recursive: true });
}

Deno.test("a failed move of a key from the file to a program does not lose it", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  await runPml(ws, SET, { stdin: "hunter2-hunter2\n" });
  await blocked(ws, "key_sources.json", async () => {
    const from = ["key", "from", "SOME_KEY", "--", "echo", "of-the-program"];
    const { code, stdout } = await runPmlOnTerminal(ws, from, { typed: [] });
    assert.notEqual(code, 0, stdout);
    assert.match(stdout, /key_sources\.json/);
  });
  assert.equal(await whence(ws), "the key file");
});

Deno.test("a failed move of a key from the file to the keyring does not lose it", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  await using keyring = await FakeKeyring.make();
  await runPml(ws, SET, { stdin: "hunter2-hunter2\n" });
  await blocked(ws, "key_sources.json", async () => {
    const { code } = await runPml(ws, SET, { stdin: "another\n", env: { PATH: keyring.path } });
    assert.notEqual(code, 0);
  });
  assert.equal(await whence(ws), "the key file");
});

Deno.test("a failed move of a key from a program to the file does not lose it", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  await writeFile(
    join(ws.home, "key_sources.json"),
    JSON.stringify({ SOME_KEY: { command: ["/bin/echo", "of-the-program"] } }),
    { mode: 0o600 },
  );
  await blocked(ws, "keys.env", async () => {
    const { code, stderr } = await runPml(ws, SET, { stdin: "hunter2-hunter2\n" });
    assert.notEqual(code, 0);
    assert.match(stderr, /keys\.env/);
  });
  assert.equal(await whence(ws), "a command");
});

Deno.test("an import that cannot be recorded leaves no copy, and changes nothing", async () => {
  const servers = { mcpServers: { one: { command: "node", args: ["one.js"] } } };
  await using ws = await makeWorkspace({
    pml: { version: 1 },
    files: { "client.json": JSON.stringify(servers) },
  });
  const before = [await readdir(ws.path), await readFile(ws.file(".pml.json"), "utf8")];
  // A file cannot contain other files.
  await mkdir(ws.home, { recursive: true });
  await writeFile(join(ws.home, "imports"), "");
  const words = ["import", "client.json", "--workspace"];
  const { code, stdout } = await runPmlOnTerminal(ws, words, { typed: [["Import this", "y"]] });
  assert.equal(code, 2, stdout);
  assert.deepEqual([await readdir(ws.path), await readFile(ws.file(".pml.json"), "utf8")], before);
});

Deno.test("the next installation removes the files of a killed one, and keeps those of a running one", async () => {
  await using npm = new FakeNpm({ own: { "1.0.0": npmServer('"fine"') } });
  await using ws = await makeWorkspace({
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
    pml: { version: 1, mcpServers: { own: { command: "npx", args: ["-y", "own"] } } },
  });
  const half = (name: string) => join(ws.home, "servers", `npm-${"a".repeat(32)}.${name}`);
  for (const name of ["killed", "running"]) {
    await mkdir(join(half(name), "node_modules"), { recursive: true });
  }
  await utimes(half("killed"), 0, 0);
  const { code, stderr } = await runPml(ws, ["install", "own"], { ms: 60_000 });
  assert.equal(code, 0, stderr);
  const left = (await readdir(join(ws.home, "servers"))).filter((name) => name.includes("."));
  assert.deepEqual(left.map((name) => name.split(".")[1]), ["running"]);
});

Deno.test("a file in PML_TRUST needs no record if it has no modules", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  await mkdir(ws.home, { recursive: true });
  await writeFile(join(ws.home, "trust"), "");
  const { code, stderr } = await runPml(ws, ["uninstall", "--json"]);
  assert.equal(code, 0, stderr);
});

Deno.test("a changed tool does not run unasked if the approved version cannot be read", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1, permissions: { allow: ["own:*"] } } });
  const program = join(ws.root, "main.js");
  const text = npmServer('"fine"')["main.js"] ?? "";
  await writeFile(program, text);
  await mkdir(ws.home, { recursive: true });
  await writeFile(
    join(ws.home, "config.yaml"),
    `mcpServers:\n  own: { command: node, args: [${JSON.stringify(program)}] }\n`,
  );
  const call = () => runPml(ws, ["call", "own:tell"]);
  assert.equal((await call()).stdout, '"fine"\n');
  await writeFile(program, text.replace('name: "tell",', 'name: "tell", description: "Evil",'));
  const [pins = ""] = (await readdir(join(ws.home, "pins"))).filter((one) => one.endsWith(".json"));
  const path = join(ws.home, "pins", pins);
  const whole = await readFile(path, "utf8");
  for (const broken of [whole.slice(0, -9), whole.replace(/"path": "/, "$&/other"), "[]"]) {
    await writeFile(path, broken);
    const { code, stdout, stderr } = await call();
    assert.equal(code, 2, stdout);
    assert.match(stderr, /CONFIG_INVALID: .*pins/);
    assert.equal(await readFile(path, "utf8"), broken, "nothing is pinned anew");
  }
});
