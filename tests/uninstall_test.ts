/**
 * The files that are removed with a server, and with PML itself.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { assertError } from "./cli_greeter.ts";
import { FakeNpm } from "./kit/fake_npm.ts";
import { assertGolden } from "./kit/golden.ts";
import { npmServer } from "./kit/npm_server.ts";
import { runPml, runPmlOnTerminal } from "./kit/run.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const NAMES = ["one", "one-more", "two"];

async function withPackages(npm: FakeNpm): Promise<Workspace> {
  const ws = await makeWorkspace({
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
    pml: { version: 1, permissions: { allow: NAMES.map((name) => `${name}:*`) } },
  });
  const servers = NAMES.map((name) => `  ${name}: { command: npx, args: ["-y", "${name}"] }\n`);
  await writeFile(join(ws.home, "config.yaml"), `mcpServers:\n${servers.join("")}`);
  return ws;
}

async function installed(ws: Workspace): Promise<readonly string[]> {
  const folders = (await readdir(join(ws.home, "servers"))).filter((name) =>
    /^npm-\w+$/.test(name)
  );
  const modules = folders.map((name) => readdir(join(ws.home, "servers", name, "node_modules")));
  return (await Promise.all(modules)).flat().filter((name) => NAMES.includes(name)).sort();
}

Deno.test("pml remove also removes the package of a server that no workspace names", async () => {
  const server = { "1.0.0": npmServer('"fine"', { bin: "main.js" }) };
  await using npm = new FakeNpm(Object.fromEntries(NAMES.map((name) => [name, server])));
  await using ws = await withPackages(npm);
  for (const name of NAMES) {
    const called = await runPml(ws, ["call", `${name}:tell`]);
    assert.equal(called.stdout, '"fine"\n', called.stderr);
  }
  assert.deepEqual(await installed(ws), NAMES);
  const remove = async (name: string) => {
    const result = await runPmlOnTerminal(ws, ["remove", name], {
      typed: [[`Remove ${name}?`, "y"]],
      ifAsked: [/Remove the rules of/, "n"],
    });
    assert.equal(result.code, 0, result.stdout);
    return result.stdout;
  };
  assert.match(await remove("one"), /server uses it: one\r?\n/);
  assert.deepEqual(await installed(ws), ["one-more", "two"]);
  // Another workspace approved it, and may need it again.
  const other = join(ws.root, "other");
  await mkdir(other);
  const [pins = ""] = (await readdir(join(ws.home, "pins"))).filter((one) => one.endsWith(".json"));
  const said = JSON.parse(await readFile(join(ws.home, "pins", pins), "utf8"));
  await writeFile(
    join(ws.home, "pins", `${"a".repeat(64)}.json`),
    JSON.stringify({ ...said, path: other }),
    { mode: 0o600 },
  );
  assert.doesNotMatch(await remove("two"), /Removed with it/);
  assert.deepEqual(await installed(ws), ["one-more", "two"]);
});

Deno.test("pml uninstall shows PML's files, removes them after a yes, and keeps other files", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  await writeFile(join(ws.home, "config.yaml"), "log: {}\n".replace("log: {}", "limits: {}"));
  await writeFile(join(ws.home, "mine.txt"), "mine");
  await runPml(ws, ["call", "filesystem:list_directory", "path=."]);
  await runPml(ws, ["key", "set", "SOME_KEY", "--stdin"], { stdin: "hunter2-hunter2\n" });
  await runPml(ws, ["call", "filesystem:write_file", "path=a", "content=b"]);
  await writeFile(ws.file(".mcp.json"), '{\n  "mcpServers": {}\n}\n');
  const before = await readFile(ws.file(".mcp.json"), "utf8");
  const init = await runPml(ws, ["init", "--client", "claude-code", "--yes"]);
  assert.equal(init.code, 0, init.stderr);
  assert.notEqual(await readFile(ws.file(".mcp.json"), "utf8"), before);
  const shown = JSON.parse((await runPml(ws, ["uninstall", "--json"])).stdout);
  const names = shown.kept.map(({ path }: { path: string }) => path.slice(ws.home.length + 1));
  for (const name of ["config.yaml", "journal", "keys.env", "pending"]) {
    assert.ok(names.includes(name), `${name} is not among ${names}`);
  }
  assert.deepEqual(shown.others, [join(ws.home, "mine.txt")]);
  const piped = await runPml(ws, ["uninstall"], { stdin: "y\n" });
  assert.match(piped.stderr, /APPROVAL_REQUIRED/);
  const no = await runPmlOnTerminal(ws, ["uninstall"], { typed: [["for good?", "n"]] });
  assert.equal(no.code, 1);
  assert.ok((await readdir(ws.home)).includes("keys.env"));
  const yes = await runPmlOnTerminal(ws, ["uninstall"], { typed: [["for good?", "y"]] });
  assert.equal(yes.code, 0, yes.stdout);
  assert.match(yes.stdout, /keys\.env: your keys, 1 KB/);
  assert.match(yes.stdout, /deno uninstall -g pml/);
  assert.doesNotMatch(yes.stdout, /Cannot write/);
  assert.deepEqual(await readdir(ws.home), ["mine.txt"]);
  assert.equal(await readFile(ws.file(".mcp.json"), "utf8"), before);
  assert.ok((await readdir(ws.path)).includes(".pml.json"));
});

Deno.test("pml uninstall lists everything that PML writes into its home", async () => {
  const sources = new URL("../src/", import.meta.url);
  const named = new Set<string>();
  for await (const room of Deno.readDir(sources)) {
    for await (const { name } of Deno.readDir(new URL(`${room.name}/`, sources))) {
      if (!name.endsWith(".ts") || name.endsWith("_test.ts")) continue;
      const text = await readFile(new URL(`${room.name}/${name}`, sources), "utf8");
      for (const [, first = ""] of text.matchAll(/join\([\w.#()]*[hH]ome, "([a-z_.]+)"/g)) {
        named.add(first);
      }
    }
  }
  const [, table = ""] = /PML_FILES[^{]*\{([^}]*)\}/.exec(
    await readFile(new URL("cli/_uninstall.ts", sources), "utf8"),
  ) ?? [];
  const names = [...table.matchAll(/^ +(\w+):/gm)].map(([, name]) => name);
  const unknown = [...named].map((name) => name.split(".")[0] ?? "")
    .filter((name) => name !== "" && !names.includes(name));
  assert.deepEqual(unknown, []);
  assert.ok(named.size > 15, [...named].join());
});

Deno.test("pml uninstall names the copies of clients' files, and removes those with keys after a yes", async () => {
  const key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const server = { command: "gh", env: { GH_TOKEN: key } };
  const text = JSON.stringify({ mcpServers: { gh: server } });
  for (const answer of ["y", "n"]) {
    await using ws = await makeWorkspace({ files: { ".mcp.json": text } });
    const moved = await runPmlOnTerminal(ws, ["import", ".mcp.json", "--move"], {
      typed: [[/Import .*\[N\] no/, "y"], [/Store GH_TOKEN/, "y"], [/Start th/, "n"], [
        /out of/,
        "y",
      ]],
    });
    assert.equal(moved.code, 0, moved.stdout);
    const folder = join(ws.home, "backups");
    const shown = JSON.parse((await runPml(ws, ["uninstall", "--json"])).stdout);
    assert.ok(shown.kept.some(({ path }: { path: string }) => path === folder));
    assert.deepEqual(shown.others, []);
    assert.deepEqual(shown.moved.map((path: string) => dirname(path)), [folder]);
    const removed = await runPmlOnTerminal(ws, ["uninstall"], {
      typed: [[/backups: .*for good\?/s, "y"], [/without PML\?/, "n"], [/copies, too\?/, answer]],
    });
    assert.equal(removed.code, 0, removed.stdout);
    const names = await readdir(ws.home).catch(() => []);
    assert.deepEqual(names, answer === "y" ? [] : ["backups", "imports"]);
  }
});

Deno.test("pml uninstall asks about each copy with servers that the user kept, as often as it runs", async () => {
  const key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
  const text = JSON.stringify({
    mcpServers: { gh: { command: "gh", env: { GH_TOKEN: key } } },
  });
  await using ws = await makeWorkspace({ files: { ".mcp.json": text } });
  const move = await runPmlOnTerminal(ws, ["import", ".mcp.json", "--move"], {
    typed: [[/Import .*\[N\] no/, "y"], [/Store GH_TOKEN/, "y"], [/Start th/, "n"], [
      /out of/,
      "y",
    ]],
  });
  assert.equal(move.code, 0, move.stdout);
  const uninstall = async (offer: readonly [RegExp, string][] = []) => {
    const result = await runPmlOnTerminal(ws, ["uninstall"], {
      typed: [[/for good\?/, "y"], ...offer, [/copies, too\?/, "n"]],
    });
    assert.equal(result.code, 0, result.stdout);
  };
  const folder = join(ws.home, "backups");
  const declined: [RegExp, string] = [/without PML\?/, "n"];
  await uninstall([declined]);
  const [name = ""] = await readdir(folder);
  // The second run finds the record. The others find none, or one that is damaged or of another file.
  const records = join(ws.home, "imports");
  const [record = ""] = await readdir(records);
  const content = await readFile(join(records, record), "utf8");
  for (
    const damage of [
      undefined,
      () => rm(records, { recursive: true }),
      async () => {
        await mkdir(records);
        await writeFile(join(records, record), "{");
      },
      async () => {
        await mkdir(records);
        const other = content.replace(/"isMove": ?true/, '"isMove":false');
        assert.notEqual(other, content);
        await writeFile(join(records, `${"0".repeat(64)}.json`), other);
      },
    ]
  ) {
    await damage?.();
    await runPml(ws, ["call", "git:status"]);
    const { moved } = JSON.parse((await runPml(ws, ["uninstall", "--json"])).stdout);
    assert.deepEqual(moved, [join(folder, name)]);
    await uninstall(damage === undefined ? [declined] : []);
    assert.equal(await readFile(join(folder, name), "utf8"), text);
  }
  const last = await runPmlOnTerminal(ws, ["uninstall"], {
    typed: [[/backup: [^]*for good\?/, "y"], [/copies, too\?/, "y"]],
  });
  assert.equal(last.code, 0, last.stdout);
  assert.deepEqual(await readdir(ws.home).catch(() => []), []);
});

Deno.test("pml uninstall puts servers back, or keeps the records for an undo, or names the manual step", async () => {
  const text = JSON.stringify({ mcpServers: { notes: { command: "notes" } } }, null, 2);
  const cases = [
    { title: "servers are put back", putsBack: "y" },
    { title: "servers stay in copies", putsBack: "n", removes: "n" },
    { title: "copies are removed", putsBack: "n", removes: "y" },
    { title: "a file was changed since", putsBack: "y", removes: "n", isChanged: true },
  ];
  for (const { title, putsBack, removes, isChanged = false } of cases) {
    await using ws = await makeWorkspace({ files: { ".mcp.json": text, "package.json": "{}" } });
    const run = async (...words: string[]) => {
      const result = await runPml(ws, words);
      assert.equal(result.code, 0, result.stderr);
    };
    const type = async (words: string[], typed: readonly (readonly [RegExp, string])[]) => {
      const result = await runPmlOnTerminal(ws, words, { typed });
      assert.equal(result.code, 0, result.stdout);
      return result.stdout.replaceAll("\r", "");
    };
    await run("init", "--yes");
    await type(["import", "claude-code", "--move"], [
      [/Import .*\[N\] no/, "y"],
      [/Start th/, "n"],
      [/out of/, "y"],
    ]);
    await run("init", "--client", "cursor", "--yes");
    const file = () => readFile(ws.file(".mcp.json"), "utf8");
    const changed = `${await file()}\n`;
    if (isChanged) await writeFile(ws.file(".mcp.json"), changed);
    const stdout = await type(["uninstall"], [
      [/for good\?/, "y"],
      [/without PML\?/, putsBack],
      ...removes === undefined ? [] : [[/copies, too\?/, removes] as const],
    ]);
    const last = stdout.slice(stdout.indexOf("without PML?")).replaceAll(
      /[0-9a-f]{16}-/g,
      "HASH-",
    );
    assertGolden(`uninstall/${title}`, last);
    assert.equal(await Deno.stat(ws.file(".cursor/mcp.json")).catch(() => "gone"), "gone");
    if (isChanged) {
      assert.equal(await file(), changed);
      assert.equal((await readdir(join(ws.home, "backups"))).length, 1);
      continue;
    }
    assert.equal(await file() === text, putsBack === "y");
    if (removes === "n") {
      await type(["import", "--undo"], [[/Continue\?/, "y"]]);
      await run("init", "--undo", "--yes");
      assert.equal(await file(), text);
      const again = await runPml(ws, ["import", "--undo"]);
      assertError(again, { code: "USAGE", exit: 2 });
      assertGolden("import/undo without an import", again.stderr);
      await type(["uninstall"], [[/for good\?/, "y"]]);
    }
    assert.deepEqual(await readdir(ws.home).catch(() => []), []);
  }
});

Deno.test("pml uninstall lists the copies next to the files of clients, removes those of init, and asks about those of a move", async () => {
  const text = JSON.stringify({ mcpServers: { notes: { command: "notes" } } });
  for (const answer of ["y", "n"]) {
    await using ws = await makeWorkspace({
      pml: { version: 1 },
      files: { ".mcp.json": text, ".cursor/mcp.json": text, "other/.cursor/mcp.json": text },
    });
    const [moved, cursor, other] = [
      ws.file(".mcp.json.backup"),
      ws.file(".cursor/mcp.json.backup"),
      ws.file("other/.cursor/mcp.json.backup"),
    ];
    const run = await runPmlOnTerminal(ws, ["import", ".mcp.json", "--move"], {
      typed: [[/Import .*\[N\] no/, "y"], [/Start th/, "n"], [/out of/, "y"]],
    });
    assert.equal(run.code, 0, run.stdout);
    // PML does not find the client's file of another workspace, but its copy.
    for (const cwd of [ws.path, ws.file("other")]) {
      await writeFile(join(cwd, ".pml.json"), '{ "version": 1 }');
      const init = await runPml(ws, ["init", "--client", "cursor", "--yes"], { cwd });
      assert.equal(init.code, 0, init.stderr);
    }
    const shown = JSON.parse((await runPml(ws, ["uninstall", "--json"])).stdout);
    const paths = (all: readonly { path: string }[]) => all.map(({ path }) => path).sort();
    assert.deepEqual(paths(shown.copies), [cursor, moved, other].sort());
    assert.deepEqual(shown.moved, [moved]);
    // A copy that changed is a file of the user.
    await writeFile(other, "mine");
    const ran = await runPmlOnTerminal(ws, ["uninstall"], {
      typed: [["for good?", "y"], ["without PML?", "n"], [
        /mcp\.json\.backup: [^]*copies, too\?/,
        answer,
      ]],
    });
    assert.equal(ran.code, 0, ran.stdout);
    assert.equal(await readFile(ws.file(".cursor/mcp.json"), "utf8"), text);
    const remaining = [];
    for (const path of [cursor, moved, other]) {
      if (await Deno.stat(path).then(() => true, () => false)) remaining.push(path);
    }
    assert.deepEqual(remaining, answer === "y" ? [other] : [moved, other]);
    assert.equal(ran.stdout.includes(`Left: ${moved} (`), answer === "n");
  }
});

Deno.test("pml uninstall removes no file that a damaged record names as its copy", async () => {
  await using ws = await makeWorkspace({ pml: { version: 1 } });
  await writeFile(ws.file(".mcp.json"), '{ "mcpServers": {} }');
  const victim = join(ws.root, "victim.json.backup");
  await writeFile(victim, '{ "mcpServers": {} }', { mode: 0o600 });
  const init = await runPml(ws, ["init", "--client", "claude-code", "--yes"]);
  assert.equal(init.code, 0, init.stderr);
  const folder = join(ws.home, "imports");
  for (const name of await readdir(folder)) {
    const record = await readFile(join(folder, name), "utf8");
    const damaged = record.replaceAll(ws.file(".mcp.json.backup"), victim);
    if (damaged === record) continue;
    await writeFile(join(folder, name), damaged);
  }
  const shown = JSON.parse((await runPml(ws, ["uninstall", "--json"])).stdout);
  assert.deepEqual(shown.copies, []);
  const ran = await runPmlOnTerminal(ws, ["uninstall"], { typed: [["for good?", "y"]] });
  assert.equal(ran.code, 0, ran.stdout);
  assert.equal(await readFile(victim, "utf8"), '{ "mcpServers": {} }');
});
