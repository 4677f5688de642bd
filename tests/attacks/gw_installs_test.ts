/**
 * Packages with dependencies outside of registries: repositories, files, folders and addresses.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { FakeNpm, type Packages } from "../kit/fake_npm.ts";
import { npmServer } from "../kit/npm_server.ts";
import { endWell, textOf } from "./oracles.ts";
import { makeScene } from "./stage.ts";

const MS = 60_000;
const SHA = "0123456789012345678901234567890123456789";

/**
 * Creates a repository whose configuration makes npm start another program instead of git, and with
 * scripts.
 */
async function repository(folder: string, planted: string): Promise<string> {
  const repo = join(folder, "repo");
  await mkdir(repo);
  const files = {
    "package.json": JSON.stringify({
      name: "dep",
      version: "1.0.0",
      scripts: { prepare: `touch ${planted}`, postinstall: `touch ${planted}` },
      devDependencies: { inner: "git+file:///nowhere" },
    }),
    ".npmrc": "git=./git.sh\nignore-scripts=false\n",
    "git.sh": `#!/bin/sh\ntouch ${planted}\nexit 1\n`,
  };
  for (const [name, text] of Object.entries(files)) {
    await writeFile(join(repo, name), text, { mode: 0o755 });
  }
  const name = ["-c", "user.email=a@example.com", "-c", "user.name=a"];
  for (const args of [["init", "-q"], ["add", "-A"], [...name, "commit", "-qm", "first"]]) {
    const result = await new Deno.Command("git", { args, cwd: repo }).output();
    assert.ok(result.success, new TextDecoder().decode(result.stderr));
  }
  return repo;
}

/** Returns a server whose package has more members. */
function needing(more: Readonly<Record<string, unknown>>, files = {}): Packages[string] {
  return { "1.0.0": { ...npmServer(`"it ran"`, more), ...files } };
}

/** Returns a package with its own lock file, which names the address of its dependency. */
function locked(resolved: string): Packages[string] {
  const dependencies = { hello: "^1.0.0" };
  const lock = {
    name: "x",
    version: "1.0.0",
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { name: "x", version: "1.0.0", dependencies },
      "node_modules/hello": { version: "1.0.0", resolved },
    },
  };
  return needing({ dependencies, _hasShrinkwrap: true }, {
    "npm-shrinkwrap.json": JSON.stringify(lock),
  });
}

/** Returns packages with dependencies outside of registries, by the form of the dependency. */
function evilPackages(
  { repo, elsewhere, npm }: {
    readonly repo: string;
    readonly elsewhere: string;
    readonly npm: FakeNpm;
  },
): Packages {
  const needs = (dep: string) => needing({ dependencies: { dep } });
  return {
    gitfile: needs(`git+file://${repo}`),
    gitssh: needs("git+ssh://git@127.0.0.1:1/x.git"),
    short: needs(`github:evil.invalid/x#${SHA}`),
    folder: needs(`file:${repo}`),
    address: needs(elsewhere),
    locked: locked(elsewhere),
    lockedgit: locked(`git+file://${repo}#HEAD`),
    unhashed: locked(`${npm.url}hello/-/1.0.0.tgz`),
    distant: needing({ dist: { tarball: elsewhere.replace("hello", "distant") } }),
  };
}

function serverOf(name: string) {
  return { command: "npx", args: ["-y", `${name}@1.0.0`, "tiny"] };
}

/** Returns the packages that the options of a new npm refuse: those of git and of folders. */
function withoutOptions(every: Packages): Packages {
  return Object.fromEntries(
    Object.entries(every).filter(([name]) => /git|short|folder/.test(name)),
  );
}

/** Creates an npm without the options by which a new one refuses such packages itself. */
async function olderNpm(folder: string): Promise<string> {
  const programs = join(folder, "older");
  await mkdir(programs);
  const npm = await new Deno.Command("sh", { args: ["-c", "command -v npm"] }).output();
  const text = `#!/bin/sh
for arg; do
  shift
  case "$arg" in --allow-*) ;; *) set -- "$@" "$arg" ;; esac
done
exec ${new TextDecoder().decode(npm.stdout).trim()} "$@"
`;
  await writeFile(join(programs, "npm"), text, { mode: 0o755 });
  return programs;
}

for (const age of ["new", "older"] as const) {
  Deno.test(`only packages of a registry are installed, and no other program runs, by ${age} npm (GW14)`, async () => {
    const root = await Deno.makeTempDir();
    const planted = join(root, "PLANTED");
    const repo = await repository(root, planted);
    await using other = new FakeNpm({ hello: { "1.0.0": { "package.json": "{}" } } });
    const elsewhere = `${other.url}hello/-/1.0.0.tgz`;
    await using npm = new FakeNpm({});
    const every = evilPackages({ repo, elsewhere, npm });
    const evil = age === "new" ? every : withoutOptions(every);
    npm.publish({
      ...evil,
      hello: { "1.0.0": { "package.json": "{}", ".npmrc": "git=./git.sh\n" } },
      // A dependency under another name, and one bundled in the archive of its package, are
      // allowed.
      good: needing({ dependencies: { hello: "^1.0.0", alias: "npm:hello@1.0.0" } }),
      bundled: needing({ dependencies: { within: "1.0.0" }, bundleDependencies: ["within"] }, {
        "node_modules/within/package.json": '{"name":"within","version":"1.0.0"}',
      }),
    });
    other.publish({ hello: { "1.0.0": { "package.json": "{}" } }, distant: every.distant ?? {} });
    const settings = join(root, "npmrc");
    await writeFile(settings, `registry=${npm.url}\nfetch-retries=0\n`);
    const well = age === "new" ? ["good", "bundled"] : ["good"];
    const names = [...Object.keys(evil), ...well];
    const before = age === "new" ? [] : [await olderNpm(root)];
    await using hosted = await makeScene({
      pml: {
        version: 1,
        permissions: { allow: ["filesystem:*", ...names.map((name) => `${name}:*`)] },
        mcpServers: Object.fromEntries(names.map((name) => [name, serverOf(name)])),
      },
      env: {
        NPM_CONFIG_USERCONFIG: settings,
        NPM_CONFIG_CACHE: join(root, "cache"),
        // No request reaches a host of repositories either.
        HTTPS_PROXY: "http://127.0.0.1:1",
        NO_PROXY: "127.0.0.1",
        PATH: [...before, Deno.env.get("PATH")].join(":"),
      },
      limits: { start_ms: MS, call_ms: MS },
    });
    const { ws, pml } = hosted;
    const tell = async (name: string) =>
      textOf(await pml.callTool("call", { tool: `${name}:tell`, arguments: {} }, { ms: MS }));
    const said: Record<string, string> = {};
    for (const name of Object.keys(evil)) {
      said[name] = await tell(name);
      assert.ok(!(await readdir(root)).includes("PLANTED"), `what ${name} needs ran`);
    }
    for (const [name, text] of Object.entries(said)) {
      assert.match(text, new RegExp(`^UPSTREAM_DOWN: Cannot install "${name}@1\\.0\\.0"`), name);
      if (name !== "short") assert.match(text, /of the registries/, name);
    }
    const folders = await readdir(join(ws.home, "servers")).catch(() => []);
    assert.deepEqual(folders, [], "nothing of it is left");
    for (const name of well) assert.equal(await tell(name), '"it ran"');
    await endWell(ws, pml);
    await Deno.remove(root, { recursive: true });
  });
}

Deno.test("an npm that may start other programs installs nothing, and the hint names the version that it needs (GW14)", async () => {
  const root = await Deno.makeTempDir();
  // Like the npm of node before 18.19, which refuses the option.
  const old = `#!/bin/sh
echo "node: --import=data:text/javascript,x is not allowed in NODE_OPTIONS" >&2
exit 9
`;
  await writeFile(join(root, "npm"), old, { mode: 0o755 });
  await using hosted = await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "hello:*"] },
      mcpServers: { hello: { command: "npx", args: ["-y", "hello@1.0.0"] } },
    },
    env: { PATH: [root, Deno.env.get("PATH")].join(":") },
  });
  const { ws, pml } = hosted;
  const text = textOf(await pml.callTool("call", { tool: "hello:tell", arguments: {} }));
  assert.match(
    text,
    /^UPSTREAM_DOWN: Cannot install "hello@1\.0\.0".*ended with 9.*\n.*node 18\.19/s,
  );
  assert.deepEqual(await readdir(join(ws.home, "servers")).catch(() => []), []);
  await endWell(ws, pml);
  await Deno.remove(root, { recursive: true });
});

Deno.test("packages of a scope come from the registry that the user configured for it, others from the mirror (GW14)", async () => {
  const root = await Deno.makeTempDir();
  await using company = new FakeNpm({
    "@acme/tool": { "1.0.0": npmServer(`"of the company"`, { dependencies: { common: "1.0.0" } }) },
  });
  await using mirror = new FakeNpm({ common: { "1.0.0": { "package.json": "{}" } } });
  const settings = join(root, "npmrc");
  await writeFile(
    settings,
    `registry=${mirror.url}\n@acme:registry=${company.url}\nfetch-retries=0\n`,
  );
  await using hosted = await makeScene({
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*", "tool:*"] },
      mcpServers: { tool: { command: "npx", args: ["-y", "@acme/tool@1.0.0"] } },
    },
    env: { NPM_CONFIG_USERCONFIG: settings, NPM_CONFIG_CACHE: join(root, "cache") },
    limits: { start_ms: MS, call_ms: MS },
  });
  const { ws, pml } = hosted;
  const call = { tool: "tool:tell", arguments: {} };
  assert.equal(textOf(await pml.callTool("call", call, { ms: MS })), '"of the company"');
  assert.ok(mirror.asked.some((path) => path.includes("common")));
  await endWell(ws, pml);
  await Deno.remove(root, { recursive: true });
});
