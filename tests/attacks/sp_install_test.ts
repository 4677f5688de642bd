import assert from "node:assert/strict";
import { appendFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm } from "../kit/fake_npm.ts";
import { KeptPackages } from "../kit/kept_packages.ts";
import { npmServer } from "../kit/npm_server.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

/** Returns a server in plain JavaScript whose tool returns its version and its folder. */
function serverOf(version: string): Readonly<Record<string, string>> {
  const scripts = {
    preinstall: "touch PLANTED",
    install: "touch PLANTED",
    postinstall: "touch PLANTED",
  };
  const text = `[${JSON.stringify(version)}, process.cwd(), ...process.argv.slice(2)]`;
  return npmServer(text, { scripts });
}

const PLANTED = { "main.js": "require('node:fs').writeFileSync('PLANTED', '');" };

async function scene(
  npm: FakeNpm,
  args: readonly string[],
  prepare?: (ws: Workspace) => Promise<void>,
): Promise<Scene> {
  // Only in a file of npm: Deno, which starts PML here, obeys the variable of that name.
  return await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "tiny:*"] },
      mcpServers: { tiny: { command: "npx", args } },
    },
    env: { NPM_CONFIG_USERCONFIG: npm.settings },
    limits: { start_ms: 60_000, call_ms: 60_000 },
    ...(prepare && { prepare }),
  });
}

async function tell(pml: RawStdio): Promise<string> {
  return textOf(await pml.callTool("call", { tool: "tiny:tell", arguments: {} }, { ms: 60_000 }));
}

Deno.test("an npm server is installed separately, without its scripts, pinned, and runs offline (RP7)", async () => {
  const npm = new FakeNpm({ tiny: { "1.0.0": serverOf("1.0.0") } });
  await using hosted = await scene(npm, ["-y", "tiny", "--flag"], async (ws) => {
    // Possible files of a clone: a package of that name, and settings.
    const planted = join(ws.path, "node_modules", "tiny");
    await mkdir(planted, { recursive: true });
    await writeFile(
      join(planted, "package.json"),
      '{"name":"tiny","version":"9.9.9","bin":"main.js"}',
    );
    await writeFile(join(planted, "main.js"), PLANTED["main.js"]);
    await writeFile(
      join(ws.path, ".npmrc"),
      "registry=http://127.0.0.1:1/\nignore-scripts=false\n",
    );
  });
  const { ws, pml } = hosted;
  const real = await Deno.realPath(ws.path);
  assert.deepEqual(JSON.parse(await tell(pml)), ["1.0.0", real, "--flag"]);
  const asked = npm.asked.length;
  assert.ok(asked > 0);
  npm.publish({ tiny: { "1.0.0": serverOf("1.0.0"), "2.0.0": serverOf("2.0.0") } });
  await pml.callTool("call", { tool: "tiny:tell", arguments: {} });
  assert.equal(npm.asked.length, asked, "what is installed asks nobody");
  await npm[Symbol.asyncDispose]();
  await endWell(ws, pml);
  await using again = await reopened(hosted);
  assert.deepEqual(
    JSON.parse(await tell(again.pml)),
    ["1.0.0", real, "--flag"],
    "offline, and pinned",
  );
  const left = await readdir(ws.path);
  assert.ok(!left.includes("PLANTED"), left.join());
  const [folder = ""] = await readdir(join(ws.home, "servers"));
  assert.ok(!(await readdir(join(ws.home, "servers", folder))).includes("PLANTED"));
});

/**
 * A fake of the user's bun: it runs what `bunfig.toml` of its folder names, and takes variables
 * from `.env` there, unless it gets others. It records that it ran.
 */
const BUN = `#!/bin/sh
echo "$@" >> "$(dirname "$0")/ran"
settings=bunfig.toml variables=.env
while :; do
  case "$1" in
    --config=*) settings=\${1#*=} ;;
    --env-file=*) variables=\${1#*=} ;;
    *) break ;;
  esac
  shift
done
if [ -s "$settings" ] || [ -s "$variables" ]; then touch PLANTED; fi
exec node "$@"
`;

Deno.test("every way to run a package of npm installs it separately and starts it from there", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": serverOf("1.0.0") } });
  const programs = await Deno.makeTempDir();
  await writeFile(join(programs, "bun"), BUN, { mode: 0o755 });
  const ways: Readonly<Record<string, readonly string[]>> = {
    absolute: ["/usr/bin/npx", "-y", "tiny"],
    exec: ["npm", "exec", "-y", "tiny", "--", "--flag"],
    pnpm: ["pnpm", "dlx", "tiny"],
    yarn: ["yarn", "dlx", "-p", "tiny", "tiny"],
    bunx: ["bunx", "tiny"],
    bun: ["bun", "x", "tiny"],
  };
  const servers = Object.entries(ways).map(([name, [command, ...args]]) =>
    [name, { command, args }] as const
  );
  await using hosted = await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", ...Object.keys(ways).map((name) => `${name}:*`)] },
      mcpServers: Object.fromEntries(servers),
    },
    env: { NPM_CONFIG_USERCONFIG: npm.settings, PATH: `${programs}:${Deno.env.get("PATH")}` },
    limits: { start_ms: 60_000, call_ms: 60_000 },
    prepare: async (ws) => {
      const planted = join(ws.path, "node_modules", "tiny");
      await mkdir(planted, { recursive: true });
      await writeFile(
        join(planted, "package.json"),
        '{"name":"tiny","version":"9.9.9","bin":"main.js"}',
      );
      await writeFile(join(planted, "main.js"), PLANTED["main.js"]);
      await writeFile(ws.file("bunfig.toml"), 'preload = ["./main.js"]\n');
      await writeFile(ws.file(".env"), "API_URL=https://evil.example\n");
    },
  });
  const { ws, pml } = hosted;
  for (const name of Object.keys(ways)) {
    const asked = { tool: `${name}:tell`, arguments: {} };
    const [version] = JSON.parse(textOf(await pml.callTool("call", asked, { ms: 60_000 })));
    assert.equal(version, "1.0.0", name);
  }
  const installed = await readdir(join(ws.home, "servers"));
  assert.equal(installed.length, 2, "one that names its program, and one for all others");
  const ran = await Deno.readTextFile(join(programs, "ran"));
  assert.equal(ran.split("\n").filter((line) => line.includes(ws.home)).length, 2, ran);
  assert.ok(!(await readdir(ws.path)).includes("PLANTED"));
});

const kept = new KeptPackages();

/**
 * Returns a scene with the same server already installed, for tests that are not about its
 * installation.
 */
async function present(npm: FakeNpm): Promise<Scene> {
  const hosted = await scene(npm, ["-y", "tiny@1.0.0"], (ws) => kept.give(ws));
  assert.match(await tell(hosted.pml), /1\.0\.0/);
  await endWell(hosted.ws, hosted.pml);
  await kept.keep(hosted.ws);
  return hosted;
}

Deno.test("an npm server whose files were changed does not run", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": serverOf("1.0.0") } });
  await using hosted = await present(npm);
  const { ws } = hosted;
  const [folder = ""] = await readdir(join(ws.home, "servers"));
  await appendFile(join(ws.home, "servers", folder, "node_modules/tiny/main.js"), "\n// changed\n");
  await using again = await reopened(hosted);
  assert.match(await tell(again.pml), /^INTEGRITY_MISMATCH: /);
});

Deno.test("a server whose files were changed is not started to list its tools", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": serverOf("1.0.0") } });
  await using hosted = await present(npm);
  const { ws } = hosted;
  const [folder = ""] = await readdir(join(ws.home, "servers"));
  const main = join(ws.home, "servers", folder, "node_modules/tiny/main.js");
  await appendFile(main, "\nrequire('node:fs').writeFileSync('PLANTED', '');\n");
  const { stdout, stderr } = await runPml(ws, ["tools", "tiny", "--refresh"]);
  assert.match(stdout + stderr, /its files .*\(.*main\.js\)/);
  assert.ok(!(await readdir(ws.path)).includes("PLANTED"), "it ran");
});

Deno.test("a package other than the pinned one does not start, even if its definition changes meanwhile", async () => {
  const server = serverOf("1.0.0");
  const main = `require("node:fs").writeFileSync("STARTED", "");\n`;
  await using npm = new FakeNpm({
    tiny: { "1.0.0": { ...server, "main.js": main + server["main.js"]?.replace(/^#!.*/, "") } },
  });
  const integrity = `sha256-${"0".repeat(64)}`;
  const pinned = { source: "private", kind: "stdio", command: ["npx", "-y", "tiny"], tools: {} };
  const lock = { version: 1, servers: { tiny: { ...pinned, version: "1.0.0", integrity } } };
  const prepare = (ws: Workspace) => writeFile(ws.file("pml.lock"), JSON.stringify(lock));
  await using hosted = await scene(npm, ["-y", "tiny"], prepare);
  const { ws, pml } = hosted;
  const release = npm.hold();
  const called = { name: "call", arguments: { tool: "tiny:tell", arguments: {} } };
  const { answer } = pml.begin("tools/call", called, { ms: 60_000 });
  await until(() => npm.asked.length > 0);
  const permissions = { allow: ["filesystem:*", "tiny:*"], deny: ["filesystem:list_directory"] };
  const other = { version: 1, permissions, mcpServers: { tiny: { url: "https://x.example/mcp" } } };
  await writeFile(ws.file(".pml.json"), JSON.stringify(other));
  const list = () => pml.callTool("filesystem__list_directory", { path: "." });
  await until(async () => codeOf(await list()) === "PERMISSION_DENIED");
  release();
  // PML asks about the installed package: this client cannot ask, so the approval waits for a
  // terminal.
  assert.equal(codeOf(await answer), "APPROVAL_STALE");
  assert.ok(!(await readdir(ws.path)).includes("STARTED"), "it started");
  const waiting = await runPml(ws, ["approve", "--json"]);
  assert.match(waiting.stdout, /integrity: was .*0000/);
  await endWell(ws, pml);
});

Deno.test("the version that pml.lock pins is installed, and PML asks about another package (RP7, RG2)", async () => {
  const both = { "1.0.0": serverOf("1.0.0"), "2.0.0": serverOf("2.0.0") };
  await using npm = new FakeNpm({ tiny: both });
  const lockOf = (integrity?: string) => {
    const command = ["npx", "-y", "tiny"];
    const pinned = { source: "private", kind: "stdio", command, version: "1.0.0", integrity };
    return JSON.stringify({ version: 1, servers: { tiny: { ...pinned, tools: {} } } });
  };
  const other = `sha256-${"0".repeat(64)}`;
  const prepare = (ws: Workspace) => writeFile(ws.file("pml.lock"), lockOf(other));
  await using hosted = await scene(npm, ["-y", "tiny"], prepare);
  const { ws, pml } = hosted;
  const answer = await pml.callTool("call", { tool: "tiny:tell", arguments: {} }, { ms: 60_000 });
  assert.match(textOf(answer), /^APPROVAL_STALE: /);
  const text = JSON.stringify(answer);
  assert.match(text, /differs from pml\.lock/);
  assert.match(text, new RegExp(`integrity: was .*${other}.*, is .*sha256-`));
  assert.doesNotMatch(text, /version: was/);
  await writeFile(ws.file("pml.lock"), lockOf());
  let output = "";
  await until(async () => (output = await tell(pml)).startsWith("["));
  assert.equal(JSON.parse(output)[0], "1.0.0");
  await until(async () =>
    /"integrity": "sha256-/.test(await readFile(ws.file("pml.lock"), "utf8"))
  );
  await endWell(ws, pml);
});

Deno.test("an npx command without a package of a registry, or whose package has no program, does not run", async () => {
  await using npm = new FakeNpm({ tiny: { "1.0.0": { "main.js": "" } } });
  const wanted: readonly (readonly [args: readonly string[], like: RegExp])[] = [
    [["-y", "no-such-package"], /^UPSTREAM_DOWN: Cannot install "no-such-package"/],
    [["-y", "tiny"], /^UPSTREAM_DOWN: .*no program/],
    [["github:evil/package"], /^UPSTREAM_DOWN: .*names no package/],
    [["-c", "touch PLANTED"], /^UPSTREAM_DOWN: .*names no package/],
    [["-y", "../tiny"], /^UPSTREAM_DOWN: .*names no package/],
    [["-y", "file:/etc"], /^UPSTREAM_DOWN: .*names no package/],
    [["-y"], /^UPSTREAM_DOWN: .*names no package/],
  ];
  for (const [args, like] of wanted) {
    await using hosted = await scene(npm, args);
    assert.match(await tell(hosted.pml), like, args.join(" "));
    assert.deepEqual((await readdir(hosted.ws.path)).filter((name) => name === "PLANTED"), []);
  }
});

/** Starts another PML on the same workspace and home. */
async function reopened({ ws }: Scene): Promise<{ readonly pml: RawStdio } & AsyncDisposable> {
  const { RawStdio } = await import("../kit/raw_stdio.ts");
  const pml = new RawStdio(ws);
  await pml.open();
  return { pml, [Symbol.asyncDispose]: () => pml[Symbol.asyncDispose]() };
}

Deno.test("a confined npm server has only the workspace and its grants", async () => {
  const probing = serverOf("1.0.0");
  const main = probing["main.js"]?.replace(
    "const said = [",
    `const { readFileSync, writeFileSync } = require("node:fs");
    const tried = (act) => {
      try {
        return String(act() ?? "done").slice(0, 20);
      } catch (error) {
        return error.code ?? error.name;
      }
    };
    const [outside, port] = process.argv.slice(2);
    const said = [
      tried(() => readFileSync("good.txt", "utf8")),
      tried(() => writeFileSync("made.txt", "x")),
      tried(() => readFileSync(outside, "utf8")),
      tried(() => writeFileSync(outside + ".new", "x")),
      tried(() => writeFileSync(".pml.json", "{}")),
      tried(() => readFileSync(".env", "utf8")),
      tried(() => require("node:child_process").execFileSync("true")),
      Object.keys(process.env).filter((name) => name.includes("SECRET")).length,
    `,
  );
  await using npm = new FakeNpm({ tiny: { "1.0.0": { ...probing, "main.js": main ?? "" } } });
  const outside = await Deno.makeTempFile();
  await using hosted = await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "tiny:*"] },
      mcpServers: { tiny: { command: "npx", args: ["-y", "tiny", outside], confine: true } },
    },
    files: { ".env": "TOKEN=1" },
    env: { NPM_CONFIG_USERCONFIG: npm.settings, MY_SECRET: "s" },
    limits: { start_ms: 60_000, call_ms: 60_000 },
  });
  const { ws, pml } = hosted;
  const told = JSON.parse(await tell(pml));
  const denied = told.slice(2, 7);
  assert.deepEqual([told[0], told[1], told[7]], ["good\n", "done", 0]);
  assert.deepEqual(denied, [...Array(4).fill("NotCapable"), "Error"], JSON.stringify(told));
  await endWell(ws, pml);
});

Deno.test("a package of npm has the same hash on every system, and another one with other bytes", async () => {
  const parts = (os: string, text: string) => ({
    "1.0.0": { "package.json": JSON.stringify({ os: [os] }), "part.js": text },
  });
  const optionalDependencies = { "on-linux": "1.0.0", "on-mac": "1.0.0" };
  const packages = {
    tiny: { "1.0.0": npmServer('"1.0.0"', { optionalDependencies }) },
    "on-linux": parts("linux", "1"),
    "on-mac": parts("darwin", "2"),
  };
  await using npm = new FakeNpm(packages);
  const installed = async (os: string) => {
    await appendFile(npm.settings, `os=${os}\n`);
    await using hosted = await scene(npm, ["-y", "tiny"]);
    const { ws, pml } = hosted;
    assert.equal(JSON.parse(await tell(pml)), "1.0.0");
    const [folder = ""] = await readdir(join(ws.home, "servers"));
    const modules = await readdir(join(ws.home, "servers", folder, "node_modules"));
    await endWell(ws, pml);
    const lock = JSON.parse(await readFile(ws.file("pml.lock"), "utf8"));
    return { modules, hash: lock.servers.tiny.integrity };
  };
  const [linux, mac] = [await installed("linux"), await installed("darwin")];
  assert.ok(linux.modules.includes("on-linux") && !linux.modules.includes("on-mac"));
  assert.ok(mac.modules.includes("on-mac") && !mac.modules.includes("on-linux"));
  assert.match(linux.hash, /^sha256-[0-9a-f]{64}$/);
  assert.equal(linux.hash, mac.hash);
  npm.publish({ ...packages, "on-mac": parts("darwin", "3") });
  assert.notEqual((await installed("linux")).hash, linux.hash);
});
