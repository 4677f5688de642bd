import assert from "node:assert/strict";
import { join } from "node:path";
import { FakeRegistry, manifestEntry } from "../tests/kit/fake_registry.ts";
import { Adopted } from "./adopted.ts";
import { Log } from "./audit/log.ts";
import { Redactor } from "./audit/redact.ts";
import { environmentOf } from "./config/env.ts";
import { Keys } from "./config/keys.ts";
import { pinsOf } from "./policy/pins.ts";
import { Policy } from "./policy/policy.ts";
import type { Entry } from "./registry/shelf.ts";

/** Opens what adopts in a workspace with one registry, whose token is in REG_TOKEN. */
async function openStage(entries: readonly Entry[], variables: Record<string, string> = {}) {
  await using stack = new AsyncDisposableStack();
  const registry = stack.use(await FakeRegistry.open(entries));
  const root = await Deno.realPath(await Deno.makeTempDir());
  stack.defer(() => Deno.remove(root, { recursive: true }));
  const ws = join(root, "ws");
  await Deno.mkdir(ws);
  const registries = [{ url: registry.url, token_env: "REG_TOKEN" }];
  await Deno.writeTextFile(join(ws, ".pml.json"), JSON.stringify({ version: 1, registries }));
  const home = join(root, "home");
  const own = { HOME: root, PML_HOME: home, PML_WORKSPACE: ws, PML_TRUST: ws };
  const environment = environmentOf({ ...own, ...variables });
  const warn = () => {};
  const builtins = new Set<string>();
  const options = { cwd: ws, builtins, integrityOf: () => undefined, warn };
  const policy = await Policy.open(environment, options);
  const redactor = new Redactor();
  const pins = pinsOf(policy, warn);
  const keys = new Keys({
    environment: () => policy.now.loaded.environment,
    trusted: () => undefined,
    register: () => {},
    warn,
  });
  const log = new Log({ redactor, level: "error" });
  const openAdopted = () => new Adopted({ policy, pins, keys, log, redactor, builtins });
  const adopted = stack.use(openAdopted());
  const all = stack.move();
  const signal = AbortSignal.timeout(20_000);
  const unapproved = (name: string, of = adopted) =>
    of.unapproved(name, { signal, isAllowed: false });
  return {
    registry,
    adopted,
    openAdopted,
    unapproved,
    pins,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

function remote(headers: Record<string, string>): Entry {
  return manifestEntry("far", { type: "http", url: "https://far.example/mcp", headers });
}

Deno.test("Adopted asks nobody about a server before a key that only a header names is there", async () => {
  const entries = [remote({ Authorization: "Bearer ${FAR_KEY}", "X-Team": "${TEAM:-none}" })];
  {
    await using stage = await openStage(entries);
    const missing = { code: "KEY_MISSING", detail: { missing: ["FAR_KEY"] } };
    await assert.rejects(stage.unapproved("far"), missing);
  }
  await using stage = await openStage(entries, { FAR_KEY: "far-key" });
  await (await stage.unapproved("far"))?.accept();
  assert.equal(await stage.unapproved("far"), undefined);
  assert.deepEqual(stage.adopted.wanted(), [{ server: "far", names: ["FAR_KEY"] }]);
});
