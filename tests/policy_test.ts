/**
 * The policy of a company: its prohibitions apply to every entry point, and nothing overrides them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rename, symlink, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  ENTRY_POINTS,
  type EntryPoint,
  LOOP,
  makeDoorScene,
  NOT_OFFERED,
} from "./attacks/entry_points.ts";
import { codeOf, textOf } from "./attacks/oracles.ts";
import { makeAttackWorkspace, makeScene, type SceneOptions } from "./attacks/stage.ts";
import { FakeCloud } from "./kit/fake_cloud.ts";
import { FakeRegistry, moduleEntry } from "./kit/fake_registry.ts";
import { connectHttp, servePml } from "./kit/pml_serve.ts";
import { RawStdio } from "./kit/raw_stdio.ts";
import { type RunOptions, runPml as run } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import type { Workspace } from "./kit/workspace.ts";

const WIDE = { version: 1, permissions: { allow: ["*", "filesystem:*"] } } as const;
const LIST = { path: "." };

/** Runs a command of PML with a timeout for a busy machine. */
function runPml(ws: Workspace, args: readonly string[], options: RunOptions = {}) {
  return run(ws, args, { ms: 60_000, ...options });
}

/** Replaces the policy of a workspace in one step, as distribution tools do. */
async function setPolicy(ws: Workspace, policy: object | string): Promise<void> {
  const path = pathOf(ws);
  await writeFile(`${path}.new`, typeof policy === "string" ? policy : JSON.stringify(policy));
  await chmod(`${path}.new`, 0o644);
  await rename(`${path}.new`, path);
}

function pathOf({ root }: Pick<Workspace, "root">): string {
  return join(root, "policy.yaml");
}

/** Creates a workspace with a policy. */
async function ruled(policy: object, options: SceneOptions = {}): Promise<Workspace> {
  const ws = await makeAttackWorkspace({ pml: WIDE, ...options });
  await setPolicy(ws, policy);
  return { ...ws, env: { ...ws.env, PML_POLICY: pathOf(ws) } };
}

const MOVED = { source: "good.txt", destination: "planted" };
const JUDGED = {
  "filesystem:move_file": { args: MOVED, code: "PERMISSION_DENIED" },
  "filesystem:create_directory": { args: { path: "planted" }, code: "APPROVAL_REQUIRED" },
  "filesystem:write_file": { args: { path: "free.txt", content: "x" }, code: undefined },
  "off:go": { args: { path: "x" }, code: "PERMISSION_DENIED" },
} as const;
const POLICY = {
  permissions: { deny: ["filesystem:move_file"], ask: ["filesystem:create_directory"] },
  forbid: ["stdio"],
};

Deno.test("a policy applies to each entry point", async () => {
  // A narrower allow overrides no rule of the company.
  const own = "filesystem:create_directory(path=planted)";
  const allow = ["*", ...Object.keys(JUDGED), "off:*", own];
  const mcpServers = { off: { command: "deno", args: ["eval", "x"] } };
  const folder = await Deno.makeTempDir({ prefix: "pml-policy-" });
  const policy = join(folder, "policy.yaml");
  await writeFile(policy, JSON.stringify(POLICY), { mode: 0o644 });
  await using scene = await makeDoorScene({
    era: "2025-11-25",
    pml: { version: 1, permissions: { allow }, mcpServers },
    capabilities: {},
    env: { PML_POLICY: policy },
  });
  for (const [door, use] of Object.entries<EntryPoint>(ENTRY_POINTS)) {
    if (door === "cli") continue;
    for (const [tool, { args, code }] of Object.entries(JUDGED)) {
      const text = await use(scene, tool, args);
      const isUnseen = door === LOOP && code === "PERMISSION_DENIED";
      assert.equal(text, isUnseen ? NOT_OFFERED : code, `${door}: ${tool}`);
    }
  }
  await assert.rejects(Deno.stat(scene.ws.file("planted")));
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a tool that a policy denies is in no list and no search", async () => {
  await using ws = await ruled(POLICY, {
    pml: { ...WIDE, gateway: { tools_exposure: "full_proxy" } },
  });
  await using pml = new RawStdio(ws, { era: "2026-07-28" });
  await pml.open();
  const listed = JSON.stringify(await pml.request("tools/list"));
  assert.match(listed, /filesystem__write_file/);
  assert.doesNotMatch(listed, /__move_file/);
  const search = async (query: string) =>
    textOf(await pml.callTool("search", { query, limit: 50 }));
  assert.match(await search("create a directory"), /filesystem:create_directory.*asks/);
  assert.doesNotMatch(await search("move a file"), /:move_file/);
});

Deno.test("PML itself contacts no host that a policy does not name", async () => {
  const folder = await Deno.makeTempDir({ prefix: "pml-policy-" });
  const policy = join(folder, "policy.yaml");
  await writeFile(policy, JSON.stringify({ hosts: ["a.example"] }), { mode: 0o644 });
  const allow = ["filesystem:write_file"];
  await using scene = await makeDoorScene({
    pml: { version: 1, permissions: { allow } },
    capabilities: {},
    env: { PML_POLICY: policy },
  });
  const args = { path: "free.txt", content: "x" };
  const ask = ENTRY_POINTS[LOOP];
  assert.ok(ask !== undefined);
  // The provider of the model is at another host.
  assert.equal(await ask(scene, "filesystem:write_file", args), "PERMISSION_DENIED");
  await assert.rejects(Deno.stat(scene.ws.file("free.txt")));
  await writeFile(policy, JSON.stringify({ hosts: ["127.0.0.1"] }));
  await until(async () => await ask(scene, "filesystem:write_file", args) === undefined);
  await Deno.remove(folder, { recursive: true });
});

Deno.test("a policy also denies calls of identities, and its ask rules apply to them", async () => {
  await using ws = await ruled(POLICY);
  const token = "token-of-the-ci-0001";
  const ci = {
    token: createHash("sha256").update(token).digest("hex"),
    permissions: { allow: Object.keys(JUDGED) },
  };
  await writeFile(join(ws.home, "config.yaml"), JSON.stringify({ identities: { ci } }));
  await using served = await servePml(ws);
  for (const key of [served.token, token]) {
    await using at = await connectHttp({ url: served.url, token: key });
    const call = async (tool: keyof typeof JUDGED) =>
      JSON.stringify(
        await at.client.callTool({
          name: "call",
          arguments: { tool, arguments: JUDGED[tool].args },
        }),
      );
    assert.match(await call("filesystem:write_file"), /free\.txt/);
    assert.match(
      await call("filesystem:move_file"),
      key === token ? /Cannot find|UNKNOWN/ : /PERMISSION_DENIED/,
    );
    assert.match(await call("filesystem:create_directory"), /APPROVAL_REQUIRED/);
  }
});

const KINDS: Readonly<Record<string, readonly [forbidden: string, server: object]>> = {
  program: ["stdio", { command: "deno", args: ["eval", "0"] }],
  page: ["http", { url: "https://api.example.com/mcp" }],
  boat: ["container", { command: "/usr/bin/docker", args: ["run", "x"] }],
  shell: ["container", { command: "sh", args: ["-c", "exec podman run x"] }],
  free: ["unconfined", { command: "npx", args: ["-y", "x@1.0.0"] }],
  host: ["the host 169.254.169.254", { url: "http://169.254.169.254/mcp" }],
};

Deno.test("calls of a server that a policy forbids fail with that reason, trusted or not", async () => {
  for (const trusted of [true, false]) {
    const all = Object.entries(KINDS).map(([name, [, server]]) => [`x${name}`, server]);
    const mcpServers = Object.fromEntries(all);
    const forbid = ["stdio", "http", "container", "unconfined", "cloud", "deno"];
    const pml = { ...WIDE, mcpServers, private_mcps: { xmod: { type: "deno", path: "m.js" } } };
    await using ws = await ruled({}, { trusted, pml, files: { "m.js": "" } });
    for (const [name, [word]] of [...Object.entries(KINDS), ["mod", ["deno"]] as const]) {
      const host = word.startsWith("the host");
      await setPolicy(ws, host ? { hosts: ["*.example.com"] } : { forbid: [word] });
      const { stderr, code } = await runPml(ws, ["call", `x${name}:go`]);
      assert.match(
        stderr,
        /PERMISSION_DENIED.*the company's policy ".*policy\.yaml" forbids/,
        name,
      );
      assert.ok(stderr.includes(`forbids ${word}`), stderr);
      assert.notEqual(code, 0);
    }
    await setPolicy(ws, { forbid });
    const commands = ["install xprogram", "login xpage --no-browser", "learn xfree"];
    for (const command of commands.slice(0, trusted ? 3 : 2)) {
      const { code, stderr } = await runPml(ws, command.split(" "));
      assert.match(stderr, /PERMISSION_DENIED.*the company's policy/, command);
      assert.notEqual(code, 0, command);
    }
    const { stdout } = await runPml(ws, ["why", "xpage:go"]);
    assert.match(stdout, /denied[^]*company's policy[^]*http/);
    const { stdout: doctor } = await runPml(ws, ["doctor"]);
    assert.match(doctor, /policy: \{"forbid":\["stdio".*policy\.yaml/);
    assert.match(doctor, /policy, servers: \[.*"xpage"/);
    const { stdout: tools } = await runPml(ws, ["tools"]);
    assert.match(tools, /filesystem/);
    assert.doesNotMatch(tools, /^x/m);
  }
});

Deno.test("a policy forbids registries, and kinds of their servers", async () => {
  const module =
    `export const __meta__ = { name: "greeter", version: "1.0.0", tools: { greet: {} } };
    export function greet() { return "hello"; }`;
  await using registry = await FakeRegistry.open([await moduleEntry("greeter", module)]);
  const pml = { ...WIDE, permissions: { allow: ["greeter:greet", "filesystem:*"] } };
  await using ws = await ruled({ registries: [`${registry.url}/`] });
  await writeFile(ws.file(".pml.json"), JSON.stringify(pml));
  const env = { ...ws.env, PML_REGISTRIES: registry.url };
  const call = async () => {
    const { stdout, stderr } = await runPml(ws, ["call", "greeter:greet"], { env });
    return stdout + stderr;
  };
  // A forbidden kind is refused before any approval.
  await setPolicy(ws, { forbid: ["deno"] });
  const search = async () => (await runPml(ws, ["search", "greet"], { env })).stdout;
  assert.doesNotMatch(await search(), /greeter:greet/);
  assert.match(await call(), /PERMISSION_DENIED.*"greeter".*forbids deno/);
  await setPolicy(ws, { registries: [`${registry.url}/`] });
  assert.match(await search(), /greeter:greet/);
  assert.match(await call(), /hello/);
  for (
    const [policy, why] of [
      [{ forbid: ["deno"] }, /PERMISSION_DENIED.*forbids deno/],
      [{ forbid: ["registry"] }, /PERMISSION_DENIED.*forbids all registries/],
      [{ registries: ["https://other.example"] }, /PERMISSION_DENIED.*does not name/],
    ] as const
  ) {
    await setPolicy(ws, policy);
    const before = registry.paths.length;
    assert.match(await call(), why);
    if (!("forbid" in policy)) assert.equal(registry.paths.length, before, "it was asked");
    assert.doesNotMatch(await search(), /greeter:greet/);
  }
});

Deno.test("a policy forbids the cloud, also by a bare name", async () => {
  await using hub = new FakeCloud();
  const pml = { version: 1, permissions: { allow: ["airtable:*"] }, cloud: { url: hub.url } };
  await using ws = await ruled({}, { pml });
  const env = { ...ws.env, PML_API_KEY: "key-of-the-person-0001" };
  const call = async () => (await runPml(ws, ["call", "airtable:list"], { env })).stderr;
  for (const policy of [{ forbid: ["cloud"] }, { hosts: ["a.example"] }]) {
    await setPolicy(ws, policy);
    assert.match(await call(), /PERMISSION_DENIED.*"airtable": the company's policy/);
  }
  assert.deepEqual(hub.received, []);
  await setPolicy(ws, { forbid: ["stdio"], hosts: ["127.0.0.1"] });
  assert.doesNotMatch(await call(), /PERMISSION_DENIED/);
  assert.notDeepEqual(hub.received, []);
});

Deno.test("a changed policy applies at once", async () => {
  await using ws = await ruled({});
  await using pml = new RawStdio(ws, {});
  await pml.open();
  const call = async () => {
    const arguments_ = { tool: "filesystem:list_directory", arguments: LIST };
    return codeOf(await pml.callTool("call", arguments_));
  };
  const becomes = (code: string | undefined) => until(async () => await call() === code);
  assert.equal(await call(), undefined);
  await setPolicy(ws, { permissions: { deny: ["filesystem:*"] } });
  await becomes("PERMISSION_DENIED");
  await setPolicy(ws, { permissions: { ask: ["*"] } });
  await becomes("APPROVAL_REQUIRED");
  await setPolicy(ws, "permissions: { allow: [x] }");
  await becomes("CONFIG_INVALID");
  await setPolicy(ws, {});
  await becomes(undefined);
  await Deno.remove(pathOf(ws));
  await becomes("CONFIG_INVALID");
});

Deno.test("an unusable policy stops every call, and the error names the role that can repair it", async () => {
  await using ws = await ruled({});
  const path = join(ws.root, "other.yaml");
  const made: Readonly<Record<string, readonly [() => Promise<unknown>, RegExp]>> = {
    "a link to nothing": [() => symlink("nowhere", path), /no such file/],
    "a folder": [() => mkdir(path), /not a regular file/],
    "large": [
      async () => {
        await writeFile(path, "");
        await truncate(path, 100_000_000);
      },
      /100000000 bytes/,
    ],
    "writable": [
      async () => {
        await writeFile(path, "forbid: []");
        await chmod(path, 0o664);
      },
      /others can change/,
    ],
    "an alias": [
      () => writeFile(path, "a: &a [x]\nforbid: [*a, *a]\n", { mode: 0o644 }),
      /found an alias/,
    ],
    "an unknown key": [
      () => writeFile(path, "permissions: { allow: ['*'] }", { mode: 0o644 }),
      /key "permissions.allow": .* ask, deny/,
    ],
    "another text": [
      () => writeFile(path, "my secret line", { mode: 0o644 }),
      /a string, .*an object/,
    ],
    "no file": [() => Promise.resolve(), /found no file, /],
  };
  for (const [name, [make, why]] of Object.entries(made)) {
    await Deno.remove(path, { recursive: true }).catch(() => {});
    await make();
    const env = { ...ws.env, PML_POLICY: path };
    const { stdout, stderr } = await runPml(ws, ["call", "filesystem:list_directory", "path=."], {
      env,
    });
    assert.match(stderr, /CONFIG_INVALID/, name);
    assert.match(stderr, why, name);
    assert.match(stderr, /administrator of this machine/, name);
    assert.equal(stdout, "", name);
    const listed = await runPml(ws, ["tools"], { env });
    assert.match(listed.stderr, /CONFIG_INVALID/, name);
  }
});

Deno.test("`pml why` and `pml config` show which policy decides", async () => {
  await using ws = await ruled(POLICY);
  const path = pathOf(ws);
  const { stdout } = await runPml(ws, ["why", "filesystem:move_file"]);
  assert.match(
    stdout,
    new RegExp(`denied\\s+by "filesystem:move_file" in the company's .*${path}`),
  );
  const { stdout: config } = await runPml(ws, ["config"]);
  assert.match(config, /policy +\{.*"filesystem:move_file".*policy\.yaml\)/);
  const { stderr } = await runPml(ws, ["call", "filesystem:move_file", "source=a"]);
  assert.match(stderr, /only the administrator/);
  assert.equal(await readFile(path, "utf8"), JSON.stringify(POLICY));
});

Deno.test("without a policy no output mentions one", async () => {
  await using scene = await makeScene({});
  const { stdout } = await runPml(scene.ws, ["doctor"]);
  assert.doesNotMatch(stdout, /policy/);
});
