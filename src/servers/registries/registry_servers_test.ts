import assert from "node:assert/strict";
import { join } from "node:path";
import { FakeRegistry, manifestEntry } from "../../../tests/kit/fake_registry.ts";
import { Log } from "../../audit/log.ts";
import { Redactor } from "../../audit/redact.ts";
import { environmentOf } from "../../config/env.ts";
import { Keys } from "../../config/keys.ts";
import { NO_WARNINGS } from "../../io/private_files.ts";
import { pinsOf } from "../../policy/pins.ts";
import { Policy } from "../../policy/policy.ts";
import type { EntryVersion } from "../../registry/registry_store.ts";
import { RegistryServers } from "./registry_servers.ts";

const OF_FAR = { type: "http", url: "https://far.example/mcp" };

/** Opens a workspace with one registry, whose token is in the variable `token`. */
async function openStage(
  entries: readonly EntryVersion[],
  variables: Record<string, string> = {},
  token = "REG_TOKEN",
) {
  await using stack = new AsyncDisposableStack();
  const registry = stack.use(await FakeRegistry.open(entries));
  const root = await Deno.realPath(await Deno.makeTempDir());
  stack.defer(() => Deno.remove(root, { recursive: true }));
  const ws = join(root, "ws");
  await Deno.mkdir(ws);
  const write = async (token_env: string, more: object = {}) => {
    const registries = [{ url: registry.url, token_env }];
    const text = JSON.stringify({ version: 1, registries, ...more });
    await Deno.writeTextFile(join(ws, ".pml.json"), text);
  };
  await write(token);
  const home = join(root, "home");
  const own = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws, PML_TRUST: ws };
  const environment = environmentOf({ ...own, ...variables });
  const warn = () => {};
  const builtins = new Set<string>();
  const redactor = new Redactor();
  const modules = { integrityOf: () => undefined };
  const parts = { builtins, modules, log: NO_WARNINGS, redactor };
  const policy = await Policy.open(environment, { cwd: ws }, parts);
  const pins = pinsOf(policy, NO_WARNINGS);
  const keys = new Keys({
    environment: () => policy.now.loaded.environment,
    trustedRoot: () => undefined,
    register: () => {},
    warn,
  });
  const log = new Log(redactor, "error");
  const openAdopted = () => new RegistryServers({ policy, pins, keys, log, redactor }, builtins);
  const adopted = stack.use(openAdopted());
  const all = stack.move();
  const signal = AbortSignal.timeout(20_000);
  return {
    adopted,
    openAdopted,
    unapproved: (name: string) =>
      adopted.findUnapproved(name, { signal, isAllowed: false, isNamed: true }),
    /** Moves the token to another variable. */
    rename: async (name: string) => {
      await write(name);
      await policy.reload();
    },
    /** Adds servers to the configuration file. */
    define: async (mcpServers: object) => {
      await write(token, { mcpServers });
      await policy.reload();
    },
    asked: () => registry.paths.length,
    registry,
    cache: join(home, "cache"),
    signal,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function remote(headers: Record<string, string>): EntryVersion {
  return manifestEntry("far", { ...OF_FAR, headers });
}

Deno.test("RegistryServers reports a missing key of a header before it asks the user", async () => {
  const entries = [remote({ Authorization: "Bearer ${FAR_KEY}", "X-Team": "${TEAM:-none}" })];
  {
    await using stage = await openStage(entries);
    const missing = { code: "KEY_MISSING", detail: { missing: ["FAR_KEY"] } };
    await assert.rejects(stage.unapproved("far"), missing);
  }
  await using stage = await openStage(entries, { FAR_KEY: "far-key" });
  await (await stage.unapproved("far"))?.accept();
  assert.equal(await stage.unapproved("far"), undefined);
  assert.deepEqual(stage.adopted.neededVariables(), [{ server: "far", names: ["FAR_KEY"] }]);
});

Deno.test("RegistryServers refuses a server that names the token of a registry in any place", async () => {
  const program = { command: "npx", args: ["-y", "tiny@1.0.0"] };
  const entries = [
    remote({ Authorization: "Bearer ${REG_TOKEN}" }),
    manifestEntry("low", { ...OF_FAR, headers: { A: "${reg_token:-x}" } }),
    manifestEntry("asks", { type: "stdio", install: program, env_required: ["REG_TOKEN"] }),
    manifestEntry("args", {
      type: "stdio",
      install: { ...program, args: ["-y", "tiny@1.0.0", "--key=${REG_TOKEN}"] },
    }),
  ];
  await using stage = await openStage(entries, { REG_TOKEN: "the-token" });
  for (const name of ["far", "low", "asks", "args"]) {
    await assert.rejects(stage.unapproved(name), {
      code: "REGISTRY_BAD_RESPONSE",
      message: /names REG_TOKEN, the token of a registry$/i,
    });
  }
});

Deno.test("RegistryServers refuses an approved server whose key became the token of a registry", async () => {
  const entries = [remote({ Authorization: "Bearer ${REG_TOKEN}" })];
  await using stage = await openStage(entries, { REG_TOKEN: "the-token" }, "ANOTHER");
  await (await stage.unapproved("far"))?.accept();
  assert.equal(await stage.unapproved("far"), undefined);
  assert.equal(stage.adopted.whyBlocked("far"), undefined);
  await stage.rename("REG_TOKEN");
  assert.match(stage.adopted.whyBlocked("far") ?? "", /token of a registry/);
  using again = stage.openAdopted();
  await again.open();
  assert.equal(again.manifestOf("far"), undefined);
});

Deno.test("RegistryServers has no entry for a name that a file defines, and does not ask the user", async () => {
  await using stage = await openStage([remote({})]);
  const { adopted } = stage;
  await (await stage.unapproved("far"))?.accept();
  assert.equal(await stage.unapproved("far"), undefined);
  assert.deepEqual([adopted.names(), adopted.find("far")?.identity.name], [["far"], "far"]);
  await stage.define({ far: { command: "far" } });
  const before = stage.asked();
  assert.deepEqual([adopted.names(), adopted.find("far")], [[], undefined]);
  assert.equal(await stage.unapproved("far"), undefined);
  assert.deepEqual([await adopted.identities(), stage.asked()], [[], before]);
  await stage.define({});
  assert.deepEqual(adopted.names(), ["far"], "it is there again");
});

Deno.test("RegistryServers asks a registry again whose answer was invalid", async () => {
  await using stage = await openStage([remote({})]);
  await (await stage.unapproved("far"))?.accept();
  await Deno.remove(stage.cache, { recursive: true });
  using again = stage.openAdopted();
  stage.registry.fault("*", { body: "no JSON" });
  await assert.rejects(again.identities(), { code: "REGISTRY_BAD_RESPONSE" });
  stage.registry.fault("*");
  assert.deepEqual((await again.identities()).map(({ name }) => name), ["far"]);
});
