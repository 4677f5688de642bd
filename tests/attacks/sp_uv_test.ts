import assert from "node:assert/strict";
import { appendFile, chmod, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { type FakePackage, FakeUv } from "../kit/fake_uv.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { tinyServer } from "../kit/tiny_server.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

const TELL = tinyServer(
  `["1.0.0", process.cwd(), process.env.PYTHONDONTWRITEBYTECODE, ...process.argv.slice(2)]`,
);
const TINY: FakePackage = { version: "1.0.0", programs: { "tiny-mcp": TELL } };

/** Files of a clone that would change the installation, each of which uv would read. */
const PLANTED = {
  "uv.toml": "index-url = 'http://127.0.0.1:1/'",
  "pyproject.toml": "[tool.uv]\nindex-url = 'http://127.0.0.1:1/'",
  ".python-version": "2.7",
  ".env": "UV_INDEX_URL=http://127.0.0.1:1/\nPIP_INDEX_URL=http://127.0.0.1:1/",
  ".venv/pyvenv.cfg": "home = /nowhere",
};

async function scene(
  uv: FakeUv,
  command: readonly string[],
  { env = {} }: { readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Scene> {
  const [program, ...args] = command;
  return await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "tiny:*"] },
      mcpServers: { tiny: { command: program, args } },
    },
    files: PLANTED,
    env: {
      PATH: `${uv.folder}:${process.env.PATH}`,
      UV_CONFIG_FILE: "/planted/uv.toml",
      PIP_INDEX_URL: "http://127.0.0.1:1/",
      VIRTUAL_ENV: "/planted",
      ...env,
    },
    limits: { start_ms: 60_000, call_ms: 60_000 },
  });
}

async function tell(pml: RawStdio): Promise<string> {
  return textOf(await pml.callTool("call", { tool: "tiny:tell", arguments: {} }, { ms: 60_000 }));
}

Deno.test("a server of uvx is installed separately, from wheels, pinned, and started from there", async () => {
  await using uv = await FakeUv.make({ "tiny-mcp": TINY });
  await using hosted = await scene(uv, ["uvx", "tiny-mcp@1.0.0", "--flag"]);
  const { ws, pml } = hosted;
  const real = await Deno.realPath(ws.path);
  const wanted = ["1.0.0", real, "1", "--flag"];
  assert.deepEqual(JSON.parse(await tell(pml)), wanted);
  const asked = await uv.asked();
  assert.equal(asked.length, 4, asked.join("\n"));
  assert.match(asked[1] ?? "", /^pip compile .*--no-build /);
  assert.equal(asked[2], "requirements tiny-mcp==1.0.0");
  assert.match(
    asked[3] ?? "",
    /^pip install .*--no-build .*--verify-hashes .*-r requirements\.txt$/,
  );
  await endWell(ws, pml);
  {
    await using again = new RawStdio(ws, { env: { PATH: process.env.PATH ?? "" } });
    await again.open();
    assert.deepEqual(JSON.parse(await tell(again)), wanted, "without uv, and asking nobody");
    await endWell(ws, again);
  }
  const [folder = ""] = await readdir(join(ws.home, "servers"));
  await appendFile(join(ws.home, "servers", folder, "venv/bin/tiny-mcp"), "\n// changed\n");
  await using changed = new RawStdio(ws);
  await changed.open();
  assert.match(await tell(changed), /^INTEGRITY_MISMATCH: .*\(venv\/bin\/tiny-mcp\)/);
});

Deno.test("uv tool run, --from, --with and --python mean the same as for uvx", async () => {
  const suite: FakePackage = { version: "2.0.0", programs: { one: "", two: TELL } };
  await using uv = await FakeUv.make({ suite, extra: { version: "3", programs: {} } });
  const line = "uv tool run --python 3.11 --with extra==3 --from suite two x";
  const index = { UV_DEFAULT_INDEX: "http://127.0.0.1:2/" };
  await using hosted = await scene(uv, line.split(" "), { env: index });
  assert.deepEqual(JSON.parse(await tell(hosted.pml)).slice(2), ["1", "x"]);
  const asked = await uv.asked();
  assert.match(asked[0] ?? "", / --python 3\.11 venv$/);
  assert.equal(asked[1], `index ${index.UV_DEFAULT_INDEX}`, "the person's own word counts");
  assert.ok(asked.includes("requirements suite extra==3"), asked.join("\n"));
});

Deno.test("a package of uvx that cannot be installed reports the reason and an action (GW14)", async () => {
  const isSource = { version: "1.0.0", programs: {}, isSource: true };
  const suite = { version: "1", programs: { one: "", two: "" } };
  // A wheel may name a dependency by the address of a repository or an archive.
  const needs = '{"url":"https://evil.example/needed.whl"}';
  const lured = { version: "1.0.0", programs: { lured: TELL }, needs };
  await using uv = await FakeUv.make({ old: isSource, suite, lured });
  const wanted: Readonly<Record<string, RegExp>> = {
    old: /^UPSTREAM_DOWN: Cannot install "old": `uv pip compile` ended with 1.*no wheel.*--python/s,
    "no-such": /^UPSTREAM_DOWN: Cannot install "no-such": .*Check its name/s,
    lured:
      /^UPSTREAM_DOWN: Cannot install "lured": "needed" comes from a URL.*installs only packages/s,
    suite: /^UPSTREAM_DOWN: .*has no program "suite".*--from/s,
  };
  for (const [name, like] of Object.entries(wanted)) {
    await using hosted = await scene(uv, ["uvx", name]);
    assert.match(await tell(hosted.pml), like);
    const left = await readdir(join(hosted.ws.home, "servers"));
    assert.deepEqual(left, [], "nothing half installed is left");
  }
  assert.deepEqual((await uv.asked()).filter((line) => line.startsWith("REFUSED")), []);
});

/** Installs a package on a separate machine. Returns the hash that its approval binds to. */
async function hashOf(tiny: FakePackage): Promise<string> {
  await using uv = await FakeUv.make({ "tiny-mcp": tiny });
  await using hosted = await scene(uv, ["uvx", "tiny-mcp"]);
  const { ws, pml } = hosted;
  assert.match(await tell(pml), /^\["1\.0\.0"/);
  await endWell(ws, pml);
  return JSON.parse(await readFile(ws.file("pml.lock"), "utf8")).servers.tiny.integrity;
}

Deno.test("a package of uvx has the same hash on every system, and another one with other bytes", async () => {
  const linux = await hashOf({ ...TINY, wheel: "linux", others: ["mac", "windows"] });
  const mac = await hashOf({ ...TINY, wheel: "mac", others: ["windows", "linux"] });
  assert.match(linux, /^sha256-[0-9a-f]{64}$/);
  assert.equal(linux, mac);
  assert.notEqual(await hashOf({ ...TINY, wheel: "linux", others: ["mac", "evil"] }), linux);
  assert.notEqual(await hashOf({ ...TINY, wheel: "evil", others: ["mac", "windows"] }), linux);
});

Deno.test("a package of uvx without a strong hash is identified by its files, and a wheel other than the listed one is refused", async () => {
  for (const hash of ["none", "md5"] as const) {
    const [one, other] = ["one", "other"].map((wheel) => ({ ...TINY, wheel, hash }));
    // The folders of two machines differ.
    const first = await hashOf(one ?? TINY);
    assert.notEqual(first, await hashOf(one ?? TINY), hash);
    assert.notEqual(first, await hashOf(other ?? TINY), hash);
  }
  await using uv = await FakeUv.make({ "tiny-mcp": { ...TINY, wheel: "listed", sent: "evil" } });
  await using hosted = await scene(uv, ["uvx", "tiny-mcp"]);
  assert.match(
    await tell(hosted.pml),
    /^UPSTREAM_DOWN: .*`uv pip install` ended with 1.*mismatch/s,
  );
  assert.deepEqual(await readdir(join(hosted.ws.home, "servers")), []);
});

Deno.test("a program that a workspace plants on PATH installs nothing and runs nothing", async () => {
  await using uv = await FakeUv.make({ "tiny-mcp": TINY });
  await using hosted = await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "tiny:*"] },
      mcpServers: { tiny: { command: "uvx", args: ["tiny-mcp"] } },
    },
    limits: { start_ms: 60_000, call_ms: 60_000 },
    // Evaluated when PML is spawned, after the folder was created.
    env: {},
    prepare: async (ws) => {
      await mkdir(ws.file("bin"));
      for (const name of ["uv", "node"]) {
        await writeFile(ws.file(`bin/${name}`), "#!/bin/sh\ntouch PLANTED\nexit 1\n");
        await chmod(ws.file(`bin/${name}`), 0o755);
      }
    },
  });
  const { ws } = hosted;
  const path = [ws.file("bin"), uv.folder, process.env.PATH].join(":");
  await using pml = new RawStdio(ws, { env: { PATH: path } });
  await pml.open();
  // `env node`, which starts uv's and npm's own scripts, searches PATH as well.
  assert.match(await tell(pml), /^\["1\.0\.0"/);
});
