/**
 * The package for users without Deno: packed and installed by npm, then used without network.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { makePackage } from "../tools/npm.ts";
import { AuthorizationServer } from "./kit/authorization_server.ts";
import { connect } from "./kit/client.ts";
import { HOSTILE } from "./kit/hostile.ts";
import { repoFile } from "./kit/pml_command.ts";
import { ProtectedHttp } from "./kit/protected_http.ts";
import { runPml } from "./kit/run.ts";
import { TcpSink } from "./kit/sinks.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";
import { definitions, Person, serverOf } from "./oauth_scene.ts";

/** Installing waits for the network. */
const INSTALL_MS = 240_000;

/** The files of the code that no entry names. */
const CHUNK = /^lib\/[\w.-]+-[A-Z0-9]{8}\.js$/;
/** The other files of the package, sorted. */
const FILES: readonly string[] = [
  "LICENSE",
  "README.md",
  "SECURITY.md",
  "bin/pml.cjs",
  "config/config.schema.json",
  "config/module-meta.schema.json",
  "config/pml.schema.json",
  "config/policy.schema.json",
  "config/word-vectors.LICENSE.txt",
  "lib/mod.js",
  "lib/registry.js",
  "lib/src/oauth/refresh_child.js",
  "package.json",
];

/** The package as npm packed and installed it. */
interface Installed {
  /** The files in the tarball. */
  readonly files: readonly string[];
  readonly command: readonly [string];
  readonly env: Readonly<Record<string, string>>;
}

/** Creates a hostile folder, with a server that requires a sign-in. */
async function makeHostile(url: string): Promise<Workspace> {
  const permissions = { allow: ["filesystem:read_file", "notes:*"] };
  const pml = { ...definitions({ notes: { url } }), permissions };
  return await makeWorkspace({ files: HOSTILE, pml, trusted: true });
}

/** Packs, and installs the tarball with empty caches. After that there is no network. */
async function install(ws: Workspace, proxy: string): Promise<Installed> {
  const npm = async (...args: readonly string[]) => {
    const options = { command: ["npm"], cwd: ws.root, ms: INSTALL_MS } as const;
    const { code, stdout, stderr } = await runPml(ws, args, options);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const folder = join(ws.root, "package");
  await makePackage(folder);
  const [{ files, filename }] = JSON.parse(await npm("pack", "--json", folder));
  const prefix = join(ws.root, "prefix");
  const quietly = ["--no-audit", "--no-fund", "--loglevel=error"];
  await npm("install", "-g", "--prefix", prefix, ...quietly, join(ws.root, filename));
  await writeFile(join(prefix, "deno.json"), "Settings around the package are not read.");
  return {
    files: files.map(({ path }: { readonly path: string }) => path),
    command: [join(prefix, "bin", "pml")],
    env: {
      DENO_DIR: join(ws.root, "cache"),
      HTTP_PROXY: proxy,
      HTTPS_PROXY: proxy,
      NO_PROXY: "",
      NPM_CONFIG_OFFLINE: "true",
    },
  };
}

/** Returns the permissions and features in the README's command to install. */
async function documentedFlags(ws: Workspace): Promise<readonly string[]> {
  const readme = await readFile(repoFile("README.md"), "utf8");
  const [, flags = ""] = /^deno install (-.+) -n pml jsr:@casys\/pml/m.exec(readme) ?? [];
  const script = join(ws.root, "tiny.ts");
  await writeFile(script, "");
  const args = ["install", ...flags.split(" "), "--root", ws.root, "-n", "tiny", script];
  const env = { DENO_DIR: join(ws.root, "cache") };
  const { code, stderr } = await runPml(ws, args, { command: [process.execPath], env });
  assert.equal(code, 0, stderr);
  return flagsIn(await readFile(join(ws.root, "bin", "tiny"), "utf8"));
}

function flagsIn(command: string): readonly string[] {
  return [...command.matchAll(/ --(?:allow|deny|unstable|v8)-\S+/g)].map(([flag]) => flag.trim());
}

/** Asserts that a client gets answers until SIGTERM, with the expected Deno and permissions. */
async function assertServes(ws: Workspace, { command, env }: Installed): Promise<void> {
  const args = [...command, "stdio"] as const;
  await using pml = await connect(ws, { command: args, env });
  const { tools } = await pml.client.listTools();
  assert.ok(tools.some(({ name }) => name === "search"), JSON.stringify(tools));
  const living = await pml.raw.watch.living();
  const [deno = ""] = living.map((one) => one.command).filter((text) =>
    / run .*mod\.js/.test(text)
  );
  assert.match(deno, /prefix.*@deno.* --no-config --node-modules-dir=manual /);
  // The package has one version of Deno, so it can set more flags of V8.
  const flags = flagsIn(deno).map((flag) => flag.replace(/(?<=^--v8-flags=[^,]+),.+/, ""));
  assert.deepEqual(flags, await documentedFlags(ws));
  const ended = await pml.raw.kill("SIGTERM");
  assert.deepEqual([ended.code, ended.signal], [143, null]);
  await pml.raw.watch.assertNothingLeft();
  assert.doesNotMatch(pml.raw.stderr, /EVIL/);
}

/** Asserts that a shell sees the signal that ends PML. */
async function assertPassesSignal(ws: Workspace, { command, env }: Installed): Promise<void> {
  await using pml = await connect(ws, { command: [...command, "stdio"], env });
  const living = await pml.raw.watch.living();
  const deno = living.find((one) => / run .*mod\.js/.test(one.command));
  assert.ok(deno);
  process.kill(deno.pid, "SIGKILL");
  const [{ signal }] = await pml.raw.ended;
  assert.equal(signal, "SIGKILL");
}

Deno.test("pml installs from npm with its own Deno, and then works offline in a hostile folder", async (t) => {
  await using server = new AuthorizationServer({ scopes: ["read"], expiresIn: 0 });
  await using notes = new ProtectedHttp("modern", { server, scope: "read" });
  await using ws = await makeHostile(notes.url);
  await using outside = new TcpSink();
  const installed = await install(ws, `http://127.0.0.1:${outside.port}`);

  await t.step(
    "the tarball contains code and a launcher, and no source, test or other data",
    () => {
      const others = installed.files.filter((path) => !CHUNK.test(path));
      assert.deepEqual(others.sort(), FILES);
    },
  );

  await t.step("it prints its version, and returns the exit code of a failure", async () => {
    const { version } = JSON.parse(await readFile(repoFile("deno.json"), "utf8"));
    const { code, stdout, stderr } = await runPml(ws, ["--version"], installed);
    assert.deepEqual({ code, stdout: stdout.trim(), stderr }, {
      code: 0,
      stdout: version,
      stderr: "",
    });
    assert.equal((await runPml(ws, ["nonsense"], installed)).code, 2);
  });

  await t.step("it runs a tool in the sandbox", async () => {
    const args = ["call", "filesystem:read_file", "path=README.md"];
    const { code, stdout, stderr } = await runPml(ws, args, installed);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Hello from the workspace/);
  });

  await t.step("it refreshes a sign-in", async () => {
    using person = new Person(ws.home);
    await person.signIn(serverOf("notes", notes.url));
    server.options.expiresIn = 3_600;
    const { code, stderr } = await runPml(ws, ["call", "notes:link"], installed);
    assert.equal(code, 0, stderr);
    assert.ok(server.tokens.refreshes > 0);
  });

  await t.step("it serves a client until SIGTERM", () => assertServes(ws, installed));
  await t.step("it ends by the signal that ends PML", () => assertPassesSignal(ws, installed));

  outside.assertSilent();
  await ws.assertCanaries();
});
