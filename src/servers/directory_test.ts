import assert from "node:assert/strict";
import { knownDouble } from "./_server_double_test.ts";
import type { Manifest } from "./manifest.ts";
import { CallPathStage, OracleServer } from "../app/_call_path_stage_test.ts";

const GIT = { git: { type: "http", url: "https://git.example/mcp" } };
const OFF = { command: "mine", disabled: true };
const MINE = { mine: { type: "http", url: "https://mine.example/mcp" } };

/**
 * The servers of registries that were approved here: `far`, and `gone`, which no registry has now.
 */
const REGISTRIES = {
  servers: () => ["far", "gone"],
  capabilities: () => [],
  manifestOf: (name: string) => name === "far" ? FAR : undefined,
  whyBlocked: (name: string) => name === "gone" ? "nobody has it now" : undefined,
};
const FAR = { kind: "http", name: "far" } as Manifest;

function shown(stage: CallPathStage, name: string): string {
  const { origin, kind } = stage.directory.get(name);
  return `${origin.name} ${kind}`;
}

Deno.test("a server of a trusted file replaces a built-in, and one of an untrusted file replaces none", async () => {
  const builtins = ["git", "shell"];
  const pml = { private_mcps: { ...GIT, ...MINE } };
  await using trusted = await CallPathStage.open({ pml, builtins });
  assert.equal(shown(trusted, "git"), "private http");
  assert.equal(shown(trusted, "mine"), "private http");
  assert.equal(shown(trusted, "shell"), "builtin deno");
  await using untrusted = await CallPathStage.open({ pml, builtins, trusted: false });
  assert.equal(shown(untrusted, "git"), "builtin deno");
  assert.equal(untrusted.directory.get("git").whyBlocked(), undefined);
  // It is listed, so that a call of it asks the user.
  assert.equal(shown(untrusted, "mine"), "private http");
  assert.match(untrusted.directory.get("mine").whyBlocked() ?? "", /not trusted/);
  for (const { directory } of [trusted, untrusted]) {
    const names = directory.all().map(({ name }) => name);
    assert.deepEqual(names.sort(), ["git", "mine", "shell"]);
    for (const server of directory.all()) assert.equal(directory.get(server.name), server);
  }
});

Deno.test("a name means the user's own server until the file that takes it is trusted", async () => {
  const person = 'mcpServers: { mine: { url: "https://person.example/mcp" } }\n';
  const urls: unknown[] = [];
  for (const trusted of [false, true]) {
    await using stage = await CallPathStage.open({ pml: { private_mcps: MINE }, person, trusted });
    const server = stage.directory.get("mine");
    assert.equal(server.whyBlocked(), undefined);
    urls.push((server.definition as { readonly url: string }).url);
  }
  assert.deepEqual(urls, ["https://person.example/mcp", "https://mine.example/mcp"]);
});

Deno.test("no list is requested from an unapproved server, and lists of the user's own servers are", async () => {
  const open = (listing: { readonly name: string }) => new OracleServer(knownDouble(listing.name));
  const options = { pml: { private_mcps: MINE }, open };
  await using untrusted = await CallPathStage.open({ ...options, trusted: false });
  await assert.rejects(untrusted.directory.get("mine").list("tools"), {
    code: "APPROVAL_REQUIRED",
    message: /"mine": .*not trusted/,
  });
  await using trusted = await CallPathStage.open(options);
  assert.equal((await trusted.directory.get("mine").list("tools")).length, 1);
});

Deno.test("a server that is not approved shows no list that another client had", async () => {
  const open = ({ name }: { readonly name: string }) =>
    Object.assign(new OracleServer(knownDouble(name)), {
      readEarlierList: () => Promise.resolve([{ name: "earlier" }]),
    });
  const options = { pml: { private_mcps: MINE }, open };
  await using untrusted = await CallPathStage.open({ ...options, trusted: false });
  assert.equal(await untrusted.directory.get("mine").readEarlierList?.("tools"), undefined);
  await using trusted = await CallPathStage.open(options);
  assert.equal((await trusted.directory.get("mine").readEarlierList?.("tools"))?.length, 1);
});

Deno.test("Directory keeps a disabled name free of other servers, and finds servers of registries", async () => {
  const pml = { mcpServers: { mine: OFF } };
  const registries = REGISTRIES;
  await using stage = await CallPathStage.open({ pml, registries });
  assert.equal(stage.directory.get("mine").kind, "disabled");
  assert.equal(stage.directory.get("mine").definition, undefined);
  assert.equal(shown(stage, "far"), "registry http");
  assert.equal(stage.directory.get("far").definition, FAR);
  assert.equal(stage.directory.get("gone").whyBlocked(), "nobody has it now");
  assert.equal(shown(stage, "nobody"), "none unknown");
  const names = stage.directory.all().map(({ name }) => name);
  assert.deepEqual(names.sort(), ["far", "gone"], "what is not there is not listed");
});

Deno.test("a call of a disabled name asks no registry, and names the file that disables it", async () => {
  const registries = { ...REGISTRIES, findUnapproved: () => assert.fail("a registry was asked") };
  const pml = {
    mcpServers: { mine: OFF },
    permissions: { allow: ["mine:*"] },
    registries: ["https://registry.example/mcp"],
  };
  await using stage = await CallPathStage.open({ pml, registries });
  for (const method of [undefined, "resources/read"]) {
    await assert.rejects(
      stage.call("mine", method === undefined ? "go" : "@resources", method ? { method } : {}),
      { code: "UNKNOWN_TOOL", message: /"mine" is disabled in ".*\.pml\.json"$/ },
    );
  }
});

Deno.test("the first call of a name that was pinned to run here is not sent to the cloud", async () => {
  const pinned = { source: "private", kind: "stdio", command: ["npx", "-y", "tavily"], tools: {} };
  const pml = { permissions: { allow: ["tavily:*"] } };
  const codes: string[] = [];
  for (const servers of [{ tavily: pinned }, {}]) {
    const files = { "pml.lock": JSON.stringify({ version: 1, servers }) };
    await using stage = await CallPathStage.open({ pml, files });
    codes.push(await stage.call("tavily", "search").then(({ kind }) => kind, ({ code }) => code));
  }
  assert.deepEqual(codes, ["UNKNOWN_TOOL", "CLOUD_KEY_REQUIRED"]);
});

Deno.test("Directory returns one object for the same definition, and another after a change", async () => {
  const opened: string[] = [];
  const open = (listing: { readonly name: string }) => {
    opened.push(listing.name);
    return new OracleServer(knownDouble(listing.name));
  };
  const pml = { private_mcps: { ...GIT, ...MINE } };
  await using stage = await CallPathStage.open({ pml, open });
  const [git, mine] = ["git", "mine"].map((name) => stage.directory.get(name));
  assert.ok(git !== undefined && mine !== undefined);
  assert.deepEqual(opened, [], "to know of a server opens nothing");
  await Promise.all([
    git.list("tools"),
    git.list("tools"),
    stage.directory.get("git").list("tools"),
  ]);
  assert.deepEqual(opened, ["git"]);
  // The version changes, and no definition does.
  stage.policy.approve(new Map());
  assert.equal(stage.directory.get("git"), git, "a registry's server was approved");
  await stage.policy.settle();
  assert.equal(stage.directory.get("git"), git, "the trust was looked at again");
  const other = { mine: { type: "http", url: "https://other.example/mcp" } };
  await stage.change({ private_mcps: { ...GIT, ...other } });
  assert.notEqual(stage.directory.get("mine"), mine);
  assert.notEqual(stage.directory.get("mine").definition, mine.definition);
  await stage.change({});
  assert.equal(stage.directory.get("mine").kind, "unknown");
  await stage.change(pml);
  await stage.directory.get("mine").list("tools");
  assert.deepEqual(opened, ["git", "mine"]);
});

Deno.test("a server that could not be opened is tried again by the next call", async () => {
  let isBroken = true;
  const open = (listing: { readonly name: string }) => {
    if (isBroken) throw new Error("the lock is broken");
    return new OracleServer(knownDouble(listing.name));
  };
  await using stage = await CallPathStage.open({ pml: { private_mcps: MINE }, open });
  const server = stage.directory.get("mine");
  await assert.rejects(server.list("tools"), /broken/);
  isBroken = false;
  assert.equal((await server.list("tools")).length, 1);
});
