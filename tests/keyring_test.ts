/**
 * Keys outside of PML's own files: in a real keyring (Secret Service, in its own session), and from
 * a program of the user.
 *
 * @module
 */

import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Scripted } from "../src/servers/http/_stage_test.ts";
import { call } from "./attacks/evil_servers.ts";
import { inSession } from "./kit/keyring_session.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { pmlCommand } from "./kit/pml_command.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

async function makeScene(far: Scripted): Promise<Workspace> {
  const headers = { "X-Key": "${SOME_KEY}", "X-Other": "${OTHER_KEY:-none}" };
  const ws = await makeWorkspace({
    files: { ".env": "SOME_KEY=of-dotenv\n" },
    pml: {
      permissions: { allow: ["far:*", "filesystem:*"] },
      mcpServers: { far: { type: "http", url: far.url, headers } },
    },
  });
  await mkdir(join(ws.root, "run"), { mode: 0o700 });
  return ws;
}

Deno.test("pml key set stores a key in the keyring of the session, and a server gets it from there", async () => {
  await using far = new Scripted();
  await using ws = await makeScene(far);
  const options = {
    command: inSession(pmlCommand()),
    env: { XDG_RUNTIME_DIR: join(ws.root, "run") },
  };
  const run = (args: readonly string[], stdin = "") => runPml(ws, args, { ...options, stdin });
  // A copy in the file, as before there was a keyring.
  await runPml(ws, ["key", "set", "SOME_KEY", "--stdin"], { stdin: "of-the-file\n" });
  const result = await run(["key", "set", "SOME_KEY", "--stdin"], "of-the-keyring\n");
  assert.equal(result.code, 0, result.stderr);
  assert.equal(result.stdout, "The keyring stores SOME_KEY\n");
  for (const name of await readdir(ws.home, { recursive: true, withFileTypes: true })) {
    if (!name.isFile()) continue;
    const text = await readFile(join(name.parentPath, name.name), "utf8");
    assert.ok(!/of-the-(keyring|file)/.test(text), `${name.name} has the key`);
  }
  assert.equal((await run(["call", "far:t"])).code, 0);
  assert.equal(far.came.at(-1)?.headers.get("x-key"), "of-the-keyring");
  assert.match((await run(["key", "list"])).stdout, /^SOME_KEY +the keyring +needed by far$/m);
  // Without a session there is no keyring: PML reports that, and uses the next source.
  const without = await runPml(ws, ["call", "far:t"]);
  assert.match(without.stderr, /Cannot get "SOME_KEY" from the keyring: /);
  assert.equal(far.came.at(-1)?.headers.get("x-key"), "of-dotenv");
  const removed = await run(["key", "remove", "SOME_KEY"]);
  assert.equal(removed.code, 0, removed.stderr);
  assert.equal((await run(["call", "far:t"])).code, 0);
  assert.equal(far.came.at(-1)?.headers.get("x-key"), "of-dotenv");
  assert.doesNotMatch((await run(["key", "list"])).stdout, /the keyring/);
});

Deno.test("a key that moved to a program or a file is removed from the keyring, and a broken key_sources.json stays", async () => {
  await using far = new Scripted();
  await using ws = await makeScene(far);
  const secret = join(ws.root, "secret");
  await writeFile(secret, "of-the-manager\n");
  const env = { XDG_RUNTIME_DIR: join(ws.root, "run") };
  const inKeyring = { command: inSession(pmlCommand()), env, stdin: "of-the-keyring\n" };
  const lookUp = ["lookup", "service", "pml", "name", "SOME_KEY"];
  const look = () => runPml(ws, lookUp, { command: inSession(["secret-tool"]), env });
  const set = ["key", "set", "SOME_KEY", "--stdin"];
  assert.equal((await runPml(ws, set, inKeyring)).code, 0);
  assert.equal((await look()).stdout.trim(), "of-the-keyring");
  // A locked keyring would still contain the key, so nothing moves.
  const typed = [[/ each start\?.*\[N\] no/, "y"]] as const;
  const from = ["key", "from", "SOME_KEY", "--", "cat", secret];
  const locked = await runPmlOnTerminal(ws, from, { typed });
  assert.match(locked.stdout, /KEY_MISSING: Cannot remove "SOME_KEY" from the keyring/);
  const elsewhere = await runPml(ws, set, { stdin: "of-the-file\n" });
  assert.match(elsewhere.stderr, /KEY_MISSING: Cannot remove "SOME_KEY" from the keyring/);
  assert.match((await runPml(ws, ["key", "list"], inKeyring)).stdout, /^SOME_KEY +the keyring /m);
  const moved = await runPmlOnTerminal(ws, from, { ...inKeyring, typed });
  assert.match(moved.stdout, /SOME_KEY comes from .* \(14 characters\); PML stores no copy/);
  const { code, stdout } = await look();
  assert.deepEqual([code, stdout], [1, ""]);
  const places = join(ws.home, "key_sources.json");
  await writeFile(places, '{"SOME_KEY": 1}');
  const broken = await runPml(ws, set, { stdin: "of-the-file\n" });
  assert.match(broken.stderr, /CONFIG_INVALID: Cannot use ".*key_sources.json": .*\n {2}Fix or/);
  assert.equal(await readFile(places, "utf8"), '{"SOME_KEY": 1}');
});

Deno.test("pml key from gets a key from a program, also for a running PML, and reports a failure", async () => {
  await using far = new Scripted();
  await using ws = await makeScene(far);
  const bin = join(ws.root, "bin");
  await mkdir(bin);
  const manager = join(bin, "manager");
  await writeFile(manager, '#!/bin/sh\necho >> "$1.runs"\ncat "$1" || exit 3\n');
  await chmod(manager, 0o755);
  const secret = join(ws.root, "secret");
  await writeFile(secret, "of-the-manager\n");
  const env = { PATH: `${bin}:${Deno.env.get("PATH")}` };
  await using pml = new RawStdio(ws, { env });
  await pml.open();
  await call(pml, "far:t");
  assert.equal(far.came.at(-1)?.headers.get("x-other"), "none");
  const from = ["key", "from", "OTHER_KEY", "--", "manager"];
  const piped = await runPml(ws, [...from, secret], { env });
  assert.match(piped.stderr, /there is no terminal/);
  const typed = [[/ each start\?.*\[N\] no/, "y"]] as const;
  const bad = await runPmlOnTerminal(ws, [...from, join(ws.root, "nothing")], { env, typed });
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /KEY_MISSING: Cannot get "OTHER_KEY" from ".*manager": .*No such file/);
  const result = await runPmlOnTerminal(ws, [...from, secret], { env, typed });
  assert.equal(result.code, 0, result.stdout);
  assert.match(
    result.stdout,
    /OTHER_KEY comes from .*manager \(14 characters\); PML stores no copy/,
  );
  assert.doesNotMatch(result.stdout, /of-the-manager/);
  await until(async () => {
    await call(pml, "far:t");
    return far.came.at(-1)?.headers.get("x-other") === "of-the-manager";
  });
  // Calls that need no key do not run the program.
  const runs = async () => (await readFile(`${secret}.runs`, "utf8")).length;
  const before = await runs();
  assert.equal(
    (await runPml(ws, ["call", "filesystem:list_directory", "path=."], { env })).code,
    0,
  );
  assert.equal((await runPml(ws, ["why", "filesystem:read_file"], { env })).code, 0);
  assert.equal(await runs(), before);
  const listed = await runPml(ws, ["key", "list"], { env });
  assert.match(listed.stdout, /^OTHER_KEY +a command \(.*manager .*secret\) +needed by far$/m);
  assert.equal((await pml.close()).code, 0);
  await Deno.remove(secret);
  const gone = await runPml(ws, ["call", "far:t"], { env });
  assert.match(gone.stderr, /Cannot get "OTHER_KEY" from ".*manager": .*No such file/);
  assert.equal(far.came.at(-1)?.headers.get("x-other"), "none");
  assert.equal((await runPml(ws, ["key", "remove", "OTHER_KEY"], { env })).code, 0);
  const planted = await runPmlOnTerminal(ws, ["key", "from", "OTHER_KEY", "--", "planted"], {
    env: { PATH: `${ws.path}:${Deno.env.get("PATH")}` },
  });
  assert.match(planted.stdout, /Cannot find the program "planted" on PATH/);
});

Deno.test("a program in the workspace, which tools could change, provides no key, by any path to it", async () => {
  await using far = new Scripted();
  await using ws = await makeScene(far);
  const inside = join(ws.path, "manager");
  await writeFile(inside, `#!/bin/sh\necho ran >> "${ws.root}/runs"\necho of-the-manager\n`);
  await chmod(inside, 0o755);
  const link = join(ws.root, "manager");
  await Deno.symlink(inside, link);
  for (const program of [inside, link]) {
    // The setting may come from a time when the workspace was another one.
    const places = join(ws.home, "key_sources.json");
    await writeFile(places, JSON.stringify({ OTHER_KEY: { command: [program] } }));
    await chmod(places, 0o600);
    const { stderr } = await runPml(ws, ["call", "far:t"]);
    assert.match(stderr, /"OTHER_KEY" from ".*manager": .*the workspace/);
    assert.equal(far.came.at(-1)?.headers.get("x-other"), "none");
    await Deno.remove(places);
    const from = ["key", "from", "OTHER_KEY", "--", program];
    const { code, stdout } = await runPmlOnTerminal(ws, from);
    assert.equal(code, 2, stdout);
    assert.match(stdout, /Cannot find the program ".*manager" on PATH\s+Install it outside/);
  }
  await assert.rejects(Deno.stat(`${ws.root}/runs`), Deno.errors.NotFound);
});
