import assert from "node:assert/strict";
import { userInfo } from "node:os";
import { join } from "node:path";
import { assertError, greeting, PML, write } from "./cli_greeter.ts";
import { HAS_ACCOUNTS, pmlOfAccount } from "./kit/account.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

Deno.test("pml init --yes sets up a workspace, and changes nothing the second time", async () => {
  await using ws = await makeWorkspace({ files: { "package.json": "{}" } });
  const first = await runPml(ws, ["init", "--yes"]);
  assert.equal(first.code, 0, first.stderr);
  const client = JSON.parse(await Deno.readTextFile(ws.file(".mcp.json")));
  assert.deepEqual(client.mcpServers.pml.args, ["stdio"]);
  assert.equal(client.mcpServers.pml.env, undefined);
  const pml = JSON.parse(await Deno.readTextFile(ws.file(".pml.json")));
  assert.deepEqual([pml.version, pml.workspace], [1, "."]);
  assert.ok(pml.permissions.allow.includes("filesystem:read_file"));
  const before = await listing(ws);
  const second = await runPml(ws, ["init", "--yes"]);
  assert.match(second.stderr, /Nothing was changed/);
  assert.deepEqual(await listing(ws), before);
  const trust = JSON.parse((await runPml(ws, ["trust", "--json"])).stdout);
  assert.equal(trust.trusted, true);
});

async function listing(workspace: Workspace): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for await (const { name, isFile } of Deno.readDir(workspace.path)) {
    if (isFile) found[name] = await Deno.readTextFile(workspace.file(name));
  }
  return found;
}

Deno.test("pml init keeps the content of .mcp.json, with a backup that only the user can read", async () => {
  const text =
    '{\n  // mine\n  "mcpServers": {\n    "gh": { "command": "gh" },\n  },\n  "x": [1,2]\n}\n';
  await using ws = await makeWorkspace({ files: { ".mcp.json": text, ".mcp.json.backup": "old" } });
  assert.equal((await runPml(ws, ["init", "--yes"])).code, 0);
  const after = await Deno.readTextFile(ws.file(".mcp.json"));
  assert.ok(after.startsWith(text.slice(0, text.indexOf("},\n  },") + 2)), after);
  assert.ok(after.endsWith('  },\n  "x": [1,2]\n}\n'), after);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json.backup")), "old");
  // The place next to the file is taken.
  const folder = join(ws.home, "backups");
  const [copy = ""] = [...Deno.readDirSync(folder)].map(({ name }) => join(folder, name));
  assert.equal(await Deno.readTextFile(copy), text);
  assert.equal(((await Deno.stat(copy)).mode ?? 0) & 0o777, 0o600);
});

Deno.test("pml init writes nothing where .mcp.json cannot be edited", async () => {
  await using ws = await makeWorkspace();
  const { path: folder } = ws;
  const wrong: [string, () => Promise<unknown>][] = [
    ["no JSON", () => write(ws, ".mcp.json", '{"mcpServers": ')],
    ["another shape", () => write(ws, ".mcp.json", '{"mcpServers": []}')],
    ["no text", () => Deno.writeFile(ws.file(".mcp.json"), new Uint8Array([0xff, 0xfe]))],
    ["a folder", () => Deno.mkdir(ws.file(".mcp.json"))],
    ["a link out", () => Deno.symlink(ws.outside, ws.file(".mcp.json"))],
    ["a link to nothing", () => Deno.symlink(`${folder}/none`, ws.file(".mcp.json"))],
  ];
  for (const [what, make] of wrong) {
    await make();
    const result = await runPml(ws, ["init", "--yes"]);
    assertError(result, { code: "CONFIG_INVALID", exit: 2 });
    const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
    assert.deepEqual(names, [".mcp.json"], what);
    await Deno.remove(ws.file(".mcp.json"));
  }
  await ws.assertCanaries();
});

Deno.test("pml init --yes trusts no existing file, and replaces no other server named pml", async () => {
  const client = '{"mcpServers": {"pml": {"command": "./evil"}}}';
  await using ws = await makeWorkspace({
    files: { ".mcp.json": client },
    pml: PML,
    trusted: false,
  });
  const result = await runPml(ws, ["init", "--yes"]);
  assert.equal(result.code, 0);
  assert.match(result.stdout, /another server "pml": .*evil/);
  assert.match(result.stdout, /not trusted/);
  assert.match(
    result.stderr,
    /`pml stdio`/,
  );
  assert.doesNotMatch(result.stderr, /^claude-code: start/m);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), client);
  assert.equal(JSON.parse((await runPml(ws, ["trust", "--json"])).stdout).trusted, false);
});

Deno.test("pml init asks once for the key of the cloud and continues without it after Enter; pml key set stores one without showing it", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": "{}" } });
  const key = "ac_secret_0123456789";
  const typed = [[/Add PML.*no/, "y"], [/unasked\?.*no/, "n"], [/PML_API_KEY.*Enter/, ""]] as const;
  const init = await runPmlOnTerminal(ws, ["init"], { typed });
  assert.equal(init.code, 0, init.stdout);
  await assert.rejects(Deno.stat(`${ws.home}/api_key`), Deno.errors.NotFound);
  const again = await runPmlOnTerminal(ws, ["init"]);
  assert.equal(again.code, 0, again.stdout);
  assert.doesNotMatch(again.stdout, /API_KEY/);
  const result = await runPmlOnTerminal(ws, ["key", "set"], {
    typed: [["PML_API_KEY", `x\x7f${key}`]],
  });
  assert.equal(result.code, 0, result.stdout);
  assert.ok(!result.stdout.includes(key), "the key is on the screen");
  const path = `${ws.home}/api_key`;
  assert.equal(await Deno.readTextFile(path), `${key}\n`);
  assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
  for (const text of Object.values(await listing(ws))) assert.ok(!text.includes(key));
  const doctor = await runPml(ws, ["doctor"]);
  assert.ok(!doctor.stdout.includes(key));
});

Deno.test("pml init stores the key of the cloud that is typed, or with --key read from stdin, and shows none", async () => {
  const key = "ac_secret_0123456789";
  const ways = [
    (ws: Workspace) =>
      runPmlOnTerminal(ws, ["init"], {
        typed: [[/Add PML.*no/, "y"], [/unasked\?.*no/, "n"], ["PML_API_KEY", key]],
      }),
    (ws: Workspace) =>
      runPmlOnTerminal(ws, ["init", "--yes", "--key"], { typed: [["PML_API_KEY", key]] }),
    (ws: Workspace) => runPml(ws, ["init", "--yes", "--key"], { stdin: `${key}\n` }),
  ];
  for (const init of ways) {
    await using ws = await makeWorkspace({ files: { ".mcp.json": "{}" } });
    const { code, stdout, stderr } = await init(ws);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /PML_API_KEY: stored in your PML home/);
    assert.ok(!(stdout + stderr).includes(key), "the key is shown");
    assert.equal(await Deno.readTextFile(`${ws.home}/api_key`), `${key}\n`);
    for (const text of Object.values(await listing(ws))) assert.ok(!text.includes(key));
  }
  await using ws = await makeWorkspace({ files: { ".mcp.json": "{}" }, env: { PML_API_KEY: key } });
  const result = await runPmlOnTerminal(ws, ["init"], {
    typed: [[/Add PML.*no/, "y"], [/unasked\?.*no/, "n"]],
  });
  assert.equal(result.code, 0, result.stdout);
  assert.doesNotMatch(result.stdout, /API_KEY/);
  await using dry = await makeWorkspace({ files: { ".mcp.json": "{}" } });
  assert.equal((await runPml(dry, ["init", "--key", "--dry-run"], { stdin: key })).code, 0);
  await assert.rejects(Deno.stat(`${dry.home}/api_key`), Deno.errors.NotFound);
});

Deno.test("pml init leaves the client's file unchanged if it is interrupted or declined", async () => {
  await using ws = await makeWorkspace({ files: { ".mcp.json": "{}" } });
  const off = await runPmlOnTerminal(ws, ["init"], { typed: [[/Add PML.*no/, "\x03"]] });
  assert.notEqual(off.code, 0);
  assert.deepEqual(Object.keys(await listing(ws)), [".mcp.json"]);
  assert.match(off.stdout, /CANCELLED/);
  assert.doesNotMatch(off.stdout, /--undo/);
  const typed = [[/Add PML.*no/, "no"], [/PML_API_KEY.*Enter/, ""]] as const;
  assert.equal((await runPmlOnTerminal(ws, ["init"], { typed })).code, 0);
  assert.equal(await Deno.readTextFile(ws.file(".mcp.json")), "{}");
});

Deno.test("pml init that is stopped at its second question names the undo of its changes", async () => {
  const servers = { mcpServers: { one: { command: "first" } } };
  await using ws = await makeWorkspace({ files: { ".mcp.json": JSON.stringify(servers) } });
  const stopped = await runPmlOnTerminal(ws, ["init"], {
    typed: [[/Add PML.*no/, "y"], [/unasked\?.*no/, "n"], [/Import .*no/, "\x03"]],
  });
  assert.equal(stopped.code, 130, stopped.stdout);
  assert.match(stopped.stdout, /CANCELLED.*pml init --undo/s);
  assert.doesNotMatch(stopped.stdout, /PML_API_KEY/);
});

Deno.test("pml doctor finds no problem in a good workspace, and reports those of a bad one", async () => {
  await using ws = await greeting();
  const good = await runPml(ws, ["doctor"]);
  assert.equal(good.code, 0, good.stdout);
  const { ok, findings } = JSON.parse((await runPml(ws, ["doctor", "--json"])).stdout);
  assert.equal(ok, true);
  const names = findings.map(({ name }: { name: string }) => name);
  const wanted = ["workspace", "home", "configuration", "trust", "sandbox", "journal", "cloud key"];
  for (const name of [...wanted, "context"]) assert.ok(names.includes(name), name);
  await Deno.chmod(ws.home, 0o755);
  const open = await runPml(ws, ["doctor"]);
  assert.equal(open.code, 1);
  assert.match(open.stdout, /^FAIL home: .*open to other people.*\n +Run `chmod 700/m);
  await Deno.chmod(ws.home, 0o700);
  await write(ws, ".pml.json", '{\n  "version": 1,\n  "nonsense": 1\n}');
  const bad = await runPml(ws, ["doctor"]);
  assert.equal(bad.code, 1);
  assert.match(bad.stdout, /^FAIL configuration: .*\.pml\.json:3:\d+".*nonsense/m);
});

Deno.test("each command warns of a HOME that is the current folder, and names the one it uses", async () => {
  await using ws = await makeWorkspace();
  const env = { HOME: ws.path, PML_HOME: ws.home };
  const { homedir } = userInfo();
  for (const command of ["rules", "audit", "uninstall --json", "completions bash"]) {
    const { stderr } = await runPml(ws, command.split(" "), { env });
    const lines = stderr.split("\n").filter((line) => line.includes("Ignored HOME"));
    assert.equal(lines.length, command.startsWith("completions") ? 0 : 1, command);
    assert.equal(stderr.includes(`"${homedir}"`), lines.length === 1, command);
  }
});

Deno.test("pml doctor reports an unusable PML home, and writes nothing into it", async () => {
  await using ws = await greeting({ trusted: false });
  const file = `${ws.root}/a file`;
  await Deno.writeTextFile(file, "");
  for (const PML_HOME of [file, `${file}/below`]) {
    const result = await runPml(ws, ["doctor"], { env: { PML_HOME } });
    assert.equal(result.code, 1, PML_HOME);
    assert.match(result.stdout, /^FAIL home: Cannot use /m);
    assert.doesNotMatch(result.stdout, /bug in PML/);
  }
  const inside = await runPml(ws, ["doctor"], { env: { PML_HOME: ws.file("inside") } });
  assert.match(inside.stdout, /^warn configuration: Ignored PML_HOME: /m);
  await assert.rejects(Deno.stat(ws.file("inside")), Deno.errors.NotFound);
});

Deno.test({
  name:
    "a client's file over the size limit is reported with its size, and not as one that sets a variable",
  ignore: !HAS_ACCOUNTS,
  fn: async () => {
    const file = `{"mcpServers": {}, "x": "${"a".repeat(1_000_000)}"}`;
    await using ws = await makeWorkspace({ files: { ".cursor/mcp.json": file } });
    const command = pmlOfAccount(ws, `${ws.root}/other`);
    const { stderr } = await runPml(ws, ["import", "--json"], { command });
    const path = ws.file(".cursor/mcp.json");
    for (const name of ["HOME", "PML_HOME"]) {
      const why = `it has ${file.length} bytes, and at most 1000000 are allowed; mend or remove it`;
      assert.ok(stderr.includes(`Ignored ${name}: "${path}" may set ${name} (${why}), `), stderr);
    }
    assert.doesNotMatch(stderr, /" sets /);
  },
});

Deno.test("every other command refuses a broken configuration with exit code 2", async () => {
  await using ws = await makeWorkspace({ pml: '{"version": 1, "permissions": {"allow": "*"}}' });
  const commands = [
    ["call", "filesystem:read_file", "path=a"],
    ["tools"],
    ["search", "x"],
    ["why", "a:b"],
    ["trust"],
    ["approve"],
    ["init", "--yes"],
  ];
  for (const args of commands) {
    assertError(await runPml(ws, args), { code: "CONFIG_INVALID", exit: 2 });
  }
  const lost = await runPml(ws, ["tools"], { env: { PML_WORKSPACE: "/nowhere" } });
  assertError(lost, { code: "CONFIG_INVALID", exit: 2 });
});
