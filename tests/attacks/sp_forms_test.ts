/**
 * Other forms of commands that install: other registries, shells around them, variables that change
 * node.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm, type Packages } from "../kit/fake_npm.ts";
import { npmServer } from "../kit/npm_server.ts";
import { RawStdio } from "../kit/raw_stdio.ts";
import { runPml } from "../kit/run.ts";
import { makeWorkspace } from "../kit/workspace.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

const MS = 60_000;

interface Command {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns a server that reports its registry, its arguments and its variables. */
function packageOf(from: string, more = {}): Packages[string] {
  const where = `__dirname.includes("/servers/npm-") ? "${from}" : "not what PML installed"`;
  const text = `[${where}, process.argv.slice(2), process.env.NODE_OPTIONS ?? ""]`;
  return { "1.0.0": npmServer(text, more) };
}

async function scene(
  servers: Readonly<Record<string, Command>>,
  { npmrc }: { readonly npmrc: string },
): Promise<Scene & { readonly env: Record<string, string> }> {
  const settings = await Deno.makeTempFile({ suffix: ".npmrc" });
  await writeFile(settings, `${npmrc}\nfetch-retries=0\n`);
  const env = { NPM_CONFIG_USERCONFIG: settings, NPM_TOKEN: "company-word" };
  const hosted = await makeScene({
    era: "2026-07-28",
    env,
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", ...Object.keys(servers).map((name) => `${name}:*`)] },
      mcpServers: servers,
    },
    limits: { start_ms: MS, call_ms: MS },
    prepare: async (ws) => {
      const planted = join(ws.path, "node_modules", "tiny");
      await mkdir(planted, { recursive: true });
      await writeFile(join(planted, "package.json"), '{"name":"tiny","version":"9","bin":"x.js"}');
      await writeFile(join(planted, "x.js"), "require('node:fs').writeFileSync('PLANTED', '');");
      await writeFile(join(ws.path, ".npmrc"), "@acme:registry=http://127.0.0.1:1/\n");
    },
  });
  const dispose = async () => {
    await hosted[Symbol.asyncDispose]();
    await Deno.remove(settings);
  };
  return { ...hosted, env, [Symbol.asyncDispose]: dispose };
}

async function tell({ pml }: Pick<Scene, "pml">, server: string): Promise<string> {
  const asked = { tool: `${server}:tell`, arguments: {} };
  return textOf(await pml.callTool("call", asked, { ms: MS }));
}

Deno.test("each registry of a command is used for its package, with the user's token, on any revision", async () => {
  await using usual = new FakeNpm({ tiny: packageOf("usual") });
  await using own = new FakeNpm({
    tiny: packageOf("own"),
    "@acme/tiny": packageOf("acme", { dependencies: { tiny: "1.0.0" } }),
  });
  own.guard("company-word");
  const host = own.url.replace("http:", "");
  const npx = (...args: string[]) => ({ command: "npx", args: ["-y", ...args] });
  const servers: Record<string, Command> = {
    usual: npx("tiny"),
    named: npx(`--registry=${own.url}`, "tiny"),
    word: npx("--registry", own.url, "--no-audit", "-p", "tiny", "tiny", "--flag"),
    scope: npx(`--@acme:registry=${own.url}`, "@acme/tiny"),
    variable: { ...npx("tiny"), env: { npm_config_registry: own.url } },
    wrapped: { command: "env", args: [`NPM_CONFIG_REGISTRY=${own.url}`, "npx", "-y", "tiny"] },
  };
  const npmrc = `registry=${usual.url}\n${host}:_authToken=\${NPM_TOKEN}`;
  await using hosted = await scene(servers, { npmrc });
  const { ws, pml, env } = hosted;
  await using older = new RawStdio(ws, { era: "2025-11-25", env });
  await older.open();
  // npm runs once for each: the clients install in turn.
  const clients = [pml, older];
  for (const [turn, first] of clients.entries()) {
    const from: Record<string, string> = {};
    for (const [at, name] of Object.keys(servers).entries()) {
      from[name] = JSON.parse(await tell({ pml: clients[(turn + at) % 2] ?? first }, name))[0];
    }
    assert.deepEqual(from, {
      ...{ usual: "usual", named: "own", word: "own", scope: "acme" },
      ...{ variable: "own", wrapped: "own" },
    });
  }
  const folders = await readdir(join(ws.home, "servers"));
  assert.equal(folders.length, 4, "another registry is another thing, and the same is the same");
  assert.equal((await older.close()).code, 0);
  await endWell(ws, pml);
});

Deno.test("a command's own registry widens nothing: packages from elsewhere are refused (GW14)", async () => {
  await using usual = new FakeNpm({});
  await using own = new FakeNpm({});
  await using third = new FakeNpm({});
  // The same archive, at another address.
  const archive = (npm: FakeNpm, name: string) => {
    const evil = packageOf("x", { dist: { tarball: `${npm.url}${name}/-/1.0.0.tgz` } });
    npm.publish({ [name]: evil ?? {} });
    return evil;
  };
  const dependencies = { dep: `git+file:///nowhere` };
  own.publish({
    "@acme/usual": archive(usual, "@acme/usual"),
    "@acme/third": archive(third, "@acme/third"),
    "@acme/git": packageOf("x", { dependencies }),
    "@acme/file": packageOf("x", { dependencies: { dep: "file:/etc" } }),
  });
  const packages = ["third", "git", "file", "usual"].map((name) => `@acme/${name}`);
  const servers = Object.fromEntries(packages.flatMap((name) => [
    [`r-${name.slice(6)}`, { command: "npx", args: ["-y", `--registry=${own.url}`, name] }],
    [`s-${name.slice(6)}`, { command: "npx", args: ["-y", `--@acme:registry=${own.url}`, name] }],
  ]));
  await using hosted = await scene(servers, { npmrc: `registry=${usual.url}` });
  for (const name of Object.keys(servers)) {
    // With a registry for one scope, the default one is still the user's.
    if (name === "s-usual") continue;
    assert.match(await tell(hosted, name), /^UPSTREAM_DOWN: Cannot install "@acme\//, name);
  }
  const folders = await readdir(join(hosted.ws.home, "servers")).catch(() => []);
  assert.deepEqual(folders, [], "nothing of it is left");
  assert.equal(JSON.parse(await tell(hosted, "s-usual"))[0], "x");
  await endWell(hosted.ws, hosted.pml);
});

Deno.test("a shell around npx runs the package that PML installs, separate from the workspace (RP7)", async () => {
  await using npm = new FakeNpm({
    tiny: packageOf("tiny"),
    other: {
      "1.0.0": { ...packageOf("other")?.["1.0.0"], "package.json": '{"bin":{"more":"main.js"}}' },
    },
  });
  const servers: Record<string, Command> = {
    there: { command: "npx", args: ["--no-install", "-y", "tiny"] },
    shell: { command: "sh", args: ["-c", "npx -y tiny 'a b'"] },
    login: { command: "/bin/bash", args: ["-lc", "exec npx -yq tiny x"] },
    variable: { command: "env", args: ["A=b", "npm", "--silent", "exec", "tiny", "--", "--x"] },
    several: { command: "npx", args: ["-y", "-p", "tiny", "-p", "other", "more", "y"] },
    steered: { command: "npx", args: ["-y", "--node-options=--no-warnings", "tiny"] },
  };
  await using hosted = await scene(servers, { npmrc: `registry=${npm.url}` });
  const { ws, pml, env } = hosted;
  assert.match(await tell(hosted, "there"), /^UPSTREAM_DOWN: .*"tiny": it is not installed/);
  assert.equal(npm.asked.length, 0, "nothing is installed by it");
  const { stderr, code } = await runPml(ws, ["install", "there"], { env, ms: MS });
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(await tell(hosted, "there")), ["tiny", [], ""]);
  const said: Record<string, unknown> = {};
  for (const name of Object.keys(servers).slice(1)) {
    said[name] = JSON.parse(await tell(hosted, name));
  }
  assert.deepEqual(said, {
    shell: ["tiny", ["a b"], ""],
    login: ["tiny", ["x"], ""],
    variable: ["tiny", ["--x"], ""],
    several: ["other", ["y"], ""],
    steered: ["tiny", [], "--no-warnings"],
  });
  assert.ok(!(await readdir(ws.path)).includes("PLANTED"));
  await endWell(ws, pml);
});

Deno.test("the trust question shows commands that install without PML, and variables that change node (GW10)", async () => {
  const servers: Record<string, Command> = {
    plain: { command: "sh", args: ["-c", "npx -y tiny"] },
    piped: { command: "bash", args: ["-lc", "npx -y tiny 2>&1"] },
    steered: { command: "npx", args: ["-y", "--node-options=--require=./x.cjs", "tiny"] },
  };
  const pml = { version: 1, mcpServers: servers };
  await using ws = await makeWorkspace({ files: {}, pml, trusted: false });
  const { stdout } = await runPml(ws, ["trust", "--json"]);
  const facts: string[] = JSON.parse(stdout).facts;
  const said = (name: string) => facts.find((fact) => fact.includes(`server "${name}"`)) ?? "";
  assert.doesNotMatch(said("plain"), /unpinned/);
  assert.match(said("plain"), /`pml learn plain` tries/);
  assert.match(said("piped"), /an installer .*unpinned/);
  assert.match(said("steered"), /--require=\.\/x\.cjs.*, steered by `--node-options`/);
});

Deno.test("a shell line that is not yet trusted is parsed without delay (GW10)", async () => {
  const line = (text: string): Command => ({ command: "sh", args: ["-c", text] });
  const servers: Record<string, Command> = {
    word: line(`${"a".repeat(60)};`),
    blanks: line(`npx ${" ".repeat(20_000)};`),
    tildes: line(`npx ${"a~".repeat(10_000)};`),
    quotes: line(`npx ${"''\"\"".repeat(5_000)};`),
  };
  const pml = { version: 1, mcpServers: servers };
  await using ws = await makeWorkspace({ files: {}, pml, trusted: false });
  const { stdout } = await runPml(ws, ["trust", "--json"], { ms: 30_000 });
  const facts: string[] = JSON.parse(stdout).facts;
  for (const name of Object.keys(servers)) {
    assert.ok(facts.some((fact) => fact.includes(`server "${name}"`)), name);
  }
});

Deno.test("the lines of a shell script are parsed separately (GW10)", async () => {
  const servers: Record<string, Command> = {
    lines: { command: "sh", args: ["-c", "npx -y tiny\ntouch PLANTED"] },
    home: { command: "bash", args: ["-c", "DATA=~/x npx -y tiny"] },
    ended: { command: "sh", args: ["-c", "npx -y tiny\n"] },
  };
  const pml = { version: 1, mcpServers: servers };
  await using ws = await makeWorkspace({ files: {}, pml, trusted: false });
  const { stdout } = await runPml(ws, ["trust", "--json"]);
  const facts: string[] = JSON.parse(stdout).facts;
  const said = (name: string) => facts.find((fact) => fact.includes(`server "${name}"`)) ?? "";
  assert.match(said("lines"), /an installer .*unpinned/);
  assert.match(said("home"), /an installer .*unpinned/);
  assert.doesNotMatch(said("ended"), /unpinned/);
});
