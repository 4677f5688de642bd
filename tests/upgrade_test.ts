/**
 * Newer versions of servers from npm: the output of `pml outdated`, and the changes by `pml
 * upgrade`.
 *
 * @module
 */

import assert from "node:assert/strict";
import { assertError } from "./cli_greeter.ts";
import { newestChanges } from "../tools/npm.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { assertGolden } from "./kit/golden.ts";
import { repoFile } from "./kit/pml_command.ts";
import { type CommandResult, runPml, runPmlOnTerminal, type TerminalInput } from "./kit/run.ts";
import { tinyServer } from "./kit/tiny_server.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const MS = { ms: 120_000 };

/** Returns a package that names its version in its answer, and in the description of its tool. */
function version(number: string): Readonly<Record<string, string>> {
  const main = tinyServer(`"${number}"`)
    .replace('name: "tell",', `name: "tell", description: "Says that it is ${number}",`);
  return { "package.json": '{"bin":"main.js"}', "main.js": main };
}

async function withTiny(npm: FakeNpm, spec: string): Promise<Workspace> {
  const mcpServers = { tiny: { command: "npx", args: ["-y", spec] } };
  const ws = await makeWorkspace({
    pml: { version: 1, permissions: { allow: ["tiny:*"] }, mcpServers },
    trusted: true,
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
  });
  assert.match(await said(ws), /1\.0\.0/);
  return ws;
}

async function said(ws: Workspace): Promise<string> {
  const { stdout, stderr } = await runPml(ws, ["call", "tiny:tell"], MS);
  return stdout + stderr;
}

function upgrade(ws: Workspace, typed: readonly TerminalInput[]): Promise<CommandResult> {
  return runPmlOnTerminal(ws, ["upgrade", "tiny"], { typed, ...MS });
}

async function rows(ws: Workspace): Promise<unknown> {
  return JSON.parse((await runPml(ws, ["outdated", "--json"], MS)).stdout).servers;
}

const START = /Start tiny 1\.1\.0 instead of 1\.0\.0, and compare its tools\?.*\[N\] no/s;
const PIN = /1\.1\.0.*Type "pin"/s;

Deno.test("pml outdated lists newer versions; pml upgrade shows their tools and asks", async () => {
  const old = { "1.0.0": version("1.0.0") };
  await using npm = new FakeNpm({ tiny: old });
  await using ws = await withTiny(npm, "tiny");
  const row = { name: "tiny", package: "tiny", now: "1.0.0" };
  assert.deepEqual(await rows(ws), [{ ...row, newest: "1.0.0" }]);
  assert.match((await upgrade(ws, [])).stdout, /^tiny .* 1\.0\.0/m);
  npm.publish({ tiny: { ...old, "1.1.0": version("1.1.0") } });
  assert.deepEqual(await rows(ws), [{ ...row, newest: "1.1.0" }]);
  const result = await runPml(ws, ["outdated"], MS);
  assert.match(result.stdout, /^tiny +1\.0\.0 +1\.1\.0 +upgrade it$/m);
  const lock = await Deno.readTextFile(ws.file("pml.lock"));
  // A no to either question changes nothing.
  const no = await upgrade(ws, [[START, "n"]]);
  assert.equal(no.code, 1);
  const late = await upgrade(ws, [[START, "y"], [PIN, ""]]);
  assert.match(late.stdout, /tiny stays at 1\.0\.0/);
  assert.equal(await Deno.readTextFile(ws.file("pml.lock")), lock);
  assert.match(await said(ws), /1\.0\.0/);
  const yes = await upgrade(ws, [[START, "y"], [PIN, "pin"]]);
  assert.equal(yes.code, 0, yes.stdout);
  assert.match(yes.stdout, /Says that it is 1\.0\.0.*Says that it is 1\.1\.0/s);
  assert.match(await said(ws), /1\.1\.0/);
  assert.deepEqual(await rows(ws), [{ ...row, now: "1.1.0", newest: "1.1.0" }]);
  assert.equal(
    JSON.parse(await Deno.readTextFile(ws.file("pml.lock"))).servers.tiny.version,
    "1.1.0",
  );
});

Deno.test("pml upgrade changes the version in a definition, and restores it after a no", async () => {
  const old = { "1.0.0": version("1.0.0") };
  await using npm = new FakeNpm({ tiny: { ...old, "1.1.0": version("1.1.0") } });
  await using ws = await withTiny(npm, "tiny@1.0.0");
  const text = await Deno.readTextFile(ws.file(".pml.json"));
  const change = /tiny@1\.0\.0.*tiny@1\.1\.0.*Change it, start tiny.*\[N\] no/s;
  // Ctrl-D: the user stops at the question.
  for (const key of ["", "\x04"]) {
    const late = await upgrade(ws, [[change, "y"], [PIN, key]]);
    assert.match(late.stdout, key === "" ? /tiny stays at 1\.0\.0/ : /CANCELLED/);
    assert.equal(late.code, 1);
    assert.deepEqual(JSON.parse(await Deno.readTextFile(ws.file(".pml.json"))), JSON.parse(text));
  }
  assert.match(await said(ws), /1\.0\.0/);
  const yes = await upgrade(ws, [[change, "y"], [PIN, "pin"]]);
  assert.equal(yes.code, 0, yes.stdout);
  assert.match(await said(ws), /1\.1\.0/);
});

Deno.test("pml outdated prints one line for each server without a package", async () => {
  const url = "http://127.0.0.1:9/mcp";
  const mcpServers = { one: { url }, two: { url } };
  await using ws = await makeWorkspace({ pml: { version: 1, mcpServers } });
  const { stderr } = await runPml(ws, ["outdated"], MS);
  assert.deepEqual([...stderr.matchAll(/^(\w+): it is /gm)].map(([, name]) => name), [
    "one",
    "two",
  ]);
});

Deno.test("pml outdated reports failed look-ups; pml upgrade requires a package of npm", async () => {
  const npm = new FakeNpm({ tiny: { "1.0.0": version("1.0.0") } });
  await using ws = await withTiny(npm, "tiny");
  npm.publish({});
  const result = await runPml(ws, ["outdated"], MS);
  assert.equal(result.code, 1, result.stderr);
  assert.match(result.stdout, /^tiny +Cannot look up "tiny".*404/m);
  const output = await runPml(ws, ["upgrade", "tiny"], MS);
  assertError(output, { code: "UPSTREAM_DOWN", exit: 1 });
  await npm[Symbol.asyncDispose]();
  const none = await runPml(ws, ["upgrade", "filesystem"]);
  assertGolden("upgrade/a server that is no package", none.stderr);
  const script = await runPml(ws, ["upgrade", "nothing"]);
  assert.notEqual(script.code, 0);
});

Deno.test("pml update prints the newest version of PML, its changes, and the command that installs it", async () => {
  const version = JSON.parse(await Deno.readTextFile(repoFile("deno.json"))).version;
  const own = { [version]: { "package.json": "{}" } };
  await using npm = new FakeNpm({ "@casys/pml": own });
  await using ws = await makeWorkspace({ env: { NPM_CONFIG_USERCONFIG: npm.settings } });
  const same = await runPml(ws, ["update"], MS);
  assert.equal(same.stdout, `PML ${version} is the newest version\n`, same.stderr);
  const changes = "- Calls are faster.\n- \u001b[31mred";
  npm.publish({
    "@casys/pml": { ...own, "9.0.0": { "package.json": JSON.stringify({ changes }) } },
  });
  const result = await runPml(ws, ["update"], MS);
  assert.equal(result.code, 0, result.stderr);
  assert.match(result.stdout, new RegExp(`^PML ${version} runs; 9\\.0\\.0 is available\\.\\n`));
  assert.match(result.stdout, /- Calls are faster\.\n +- \\u\{1b\}\[31mred/);
  assert.match(result.stdout, /^Install the newest: deno install -gAf .* -n pml jsr:@casys\/pml$/m);
  const shown = JSON.parse((await runPml(ws, ["update", "--json"], MS)).stdout);
  assert.deepEqual([shown.newest, shown.changes], ["9.0.0", changes]);
  npm.withhold();
  npm.publish({});
  const failed = await runPml(ws, ["update"], MS);
  assertError(failed, { code: "UPSTREAM_DOWN", exit: 1 });
  assert.match(failed.stderr, /^Install the newest: deno install -gAf .*@casys\/pml$/m);
});

Deno.test("the package of npm contains its changes", async () => {
  const changes = newestChanges(await Deno.readTextFile(repoFile("CHANGELOG.md")));
  assert.match(changes, /^- /m);
  assert.doesNotMatch(changes, /^#/m);
});
