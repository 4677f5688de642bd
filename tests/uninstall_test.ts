/**
 * The files that are removed with a server, and with PML itself.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm } from "./kit/fake_npm.ts";
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
  assert.match(await remove("one"), /names it: one\r?\n/);
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
      for (const [, first = ""] of text.matchAll(/join\([\w.#]*[hH]ome, "([a-z_.]+)"/g)) {
        named.add(first);
      }
    }
  }
  const [, table = ""] = /KEPT[^{]*\{([^}]*)\}/.exec(
    await readFile(new URL("cli/_uninstall.ts", sources), "utf8"),
  ) ?? [];
  const names = [...table.matchAll(/^ +(\w+):/gm)].map(([, name]) => name);
  const unknown = [...named].map((name) => name.split(".")[0] ?? "")
    .filter((name) => name !== "" && !names.includes(name));
  assert.deepEqual(unknown, []);
  assert.ok(named.size > 15, [...named].join());
});
