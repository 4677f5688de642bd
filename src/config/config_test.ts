import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { META_TOOLS } from "./exposure.ts";
import { matches } from "../core/pattern.ts";
import { VERSION } from "../core/version.ts";
import { toolId } from "../core/tool_id.ts";
import { Scratch } from "./_scratch_test.ts";
import { loadConfig, settleConfig } from "./config.ts";
import { gatewaySettings } from "./gateway_settings.ts";
import type { RuleLine } from "./rules.ts";
import { assertGolden } from "../../tests/kit/golden.ts";

const FULL = JSON.stringify({
  version: 1,
  permissions: { allow: ["*", "a:b"], ask: ["c:d"], deny: ["shell:*"] },
  private_mcps: { weather: { type: "deno", path: "w.ts" } },
  mcpServers: { GitHub: { command: "x" } },
  registries: ["https://evil.example/mcp"],
  cloud: { url: "https://evil.example" },
  grants: { weather: { read: ["/"] } },
  gateway: { tools_exposure: "full_proxy" },
  intent: "take over",
});

function texts(lines: readonly RuleLine[]): readonly string[] {
  return lines.map(({ pattern }) => pattern.text);
}

Deno.test("loadConfig() returns the defaults without a file", async () => {
  using scratch = new Scratch();
  const loaded = await scratch.load();
  assert.equal(loaded.problem, undefined);
  assert.deepEqual(loaded.warnings, []);
  for (const trusted of [true, false]) {
    const config = settleConfig(loaded, trusted);
    assert.equal(config.home, scratch.home);
    assert.equal(config.workspace, scratch.ws);
    assert.equal(config.trusted, false);
    assert.deepEqual(config.ignored, []);
    assert.deepEqual(config.servers, []);
    assert.deepEqual(config.gateway, {
      name: "pml",
      version: VERSION,
      exposure: "meta_only",
      hybrid: {
        exposeMetaTools: true,
        exposeUnderlyingTools: true,
        applySemanticFilter: true,
        maxUnderlyingTools: 50,
        semanticThreshold: 0.6,
        whitelistedTools: [],
        blacklistedTools: [],
      },
      metaTools: META_TOOLS,
      longNames: false,
      prefix: true,
    });
    assert.equal(config.limits.callMs, 600_000);
    assert.equal(config.limits.inputBytes, 8 * 1024 * 1024);
    assert.equal(config.rules.allow.length, 18);
    const judged = (tool: string) =>
      config.rules.allow.some(({ pattern }) => matches(pattern, toolId("filesystem", tool)));
    assert.ok(judged("read_file") && judged("list_allowed_directories"));
    assert.ok(!judged("write_file") && !judged("move_file"));
    assert.ok(config.rules.allow.every(({ source }) => source === "config/mcp-permissions.json"));
  }
});

Deno.test("settleConfig() believes nothing of an untrusted file but its deny and ask", async () => {
  using scratch = new Scratch();
  const path = scratch.write("ws/.pml.json", FULL);
  const config = settleConfig(await scratch.load(), false);
  assert.equal(config.problem, undefined);
  assert.equal(config.rules.allow.length, 18);
  assert.deepEqual(texts(config.rules.ask), ["c:d", "*", "a:b"]);
  assert.deepEqual(texts(config.rules.deny), ["shell:*"]);
  assert.equal(config.rules.deny[0]?.source, path);
  assert.deepEqual(config.servers, []);
  assert.deepEqual(config.registries, [], "those of the environment");
  assert.equal(config.cloud, undefined);
  assert.equal(config.grants["constructor"], undefined);
  assert.equal(config.gateway.exposure, "meta_only");
  assert.equal(config.intent, undefined);
  assert.equal(config.trusted, false);
  assert.deepEqual(config.ignored, [
    "allow (asks)",
    "servers: weather, github",
    "registries",
    "cloud",
    "grants",
    "gateway",
    "intent",
  ]);
});

Deno.test("settleConfig() lets the rules of a trusted file stand instead of the defaults", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", FULL);
  const config = settleConfig(await scratch.load(), true);
  assert.deepEqual(texts(config.rules.allow), ["*", "a:b"]);
  assert.deepEqual(texts(config.rules.ask), ["c:d"]);
  assert.deepEqual(texts(config.rules.deny), ["shell:*"]);
  assert.deepEqual(config.servers.map(({ name }) => name), ["weather", "github"]);
  assert.deepEqual({ ...config.grants.weather }, { read: ["/"] });
  assert.equal(config.grants["constructor"], undefined);
  assert.equal(config.gateway.exposure, "full_proxy");
  assert.equal(config.intent, "take over");
  assert.deepEqual(config.ignored, []);
});

Deno.test("settleConfig() keeps the defaults where a trusted file has no permissions", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", '{"version": 1}');
  assert.equal(settleConfig(await scratch.load(), true).rules.allow.length, 18);
  scratch.write("ws/.pml.json", '{"version": 1, "permissions": {}}');
  assert.deepEqual(settleConfig(await scratch.load(), true).rules, {
    deny: [],
    ask: [],
    allow: [],
  });
});

Deno.test("settleConfig() adds deny and ask of the files above, and all rules of the user", async () => {
  using scratch = new Scratch();
  scratch.write("repo/.git", "");
  scratch.write(
    "repo/.pml.json",
    '{"version": 1, "permissions": {"deny": ["up:*"], "ask": ["up:x"], "allow": ["up:y"]}, ' +
      '"intent": "no"}',
  );
  scratch.write("repo/a/.pml.json", '{"version": 1, "permissions": {"deny": ["own:*"]}}');
  scratch.write(
    "user/.pml/config.yaml",
    "permissions: {deny: ['me:*'], ask: ['me:x'], allow: ['me:y']}",
  );
  const loaded = await loadConfig(scratch.environment(), join(scratch.root, "repo/a"));
  for (const trusted of [true, false]) {
    const { rules, intent } = settleConfig(loaded, trusted);
    assert.deepEqual(texts(rules.deny), ["own:*", "up:*", "me:*"]);
    assert.deepEqual(texts(rules.ask), ["up:x", "me:x"]);
    assert.ok(texts(rules.allow).includes("me:y"));
    assert.ok(!texts(rules.allow).includes("up:y"));
    assert.equal(intent, undefined);
  }
});

Deno.test("settleConfig() lets the person set limits and exposure, and the trusted file override", async () => {
  using scratch = new Scratch();
  scratch.write(
    "user/.pml/config.yaml",
    "limits: {call_ms: 5000}\ngateway: {tools_exposure: full_proxy, meta_tools: [call]}",
  );
  scratch.write("ws/.pml.json", '{"version": 1, "gateway": {"tools_exposure": "meta_only"}}');
  const loaded = await scratch.load();
  assert.equal(settleConfig(loaded, true).limits.callMs, 5000);
  assert.equal(settleConfig(loaded, true).limits.batch, 50);
  assert.equal(settleConfig(loaded, false).gateway.exposure, "full_proxy");
  assert.equal(settleConfig(loaded, true).gateway.exposure, "meta_only");
  assert.deepEqual(settleConfig(loaded, true).gateway.metaTools, ["call"]);
});

Deno.test("settleConfig() refuses names without prefix together with meta-tools", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", '{"version": 1, "gateway": {"prefix": false}}');
  const loaded = await scratch.load();
  assert.equal(settleConfig(loaded, false).problem, undefined);
  assert.equal(settleConfig(loaded, true).problem?.code, "CONFIG_INVALID");
  scratch.write("ws/.pml.json", '{"version": 1, "gateway": {"prefix": false, "meta_tools": []}}');
  assert.equal(settleConfig(await scratch.load(), true).problem, undefined);
});

Deno.test("The exposure semantic lists up to 20 tools that fit .7 as well as the best", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", '{"version": 1, "gateway": {"tools_exposure": "semantic"}}');
  const { exposure, semantic } = gatewaySettings(settleConfig(await scratch.load(), true));
  // The documentation and the preset promise these.
  assert.deepEqual([exposure, semantic], ["semantic", { most: 20, threshold: 0.7 }]);
});

Deno.test("settleConfig() refuses names without prefix where several servers are defined", async () => {
  using scratch = new Scratch();
  const gateway = { prefix: false, meta_tools: [] };
  const one = { one: { command: "one" } };
  scratch.write("ws/.pml.json", JSON.stringify({ version: 1, gateway, mcpServers: one }));
  assert.equal(settleConfig(await scratch.load(), true).problem, undefined);
  scratch.write("user/.pml/config.yaml", "mcpServers: { two: { command: two } }\n");
  const { problem } = settleConfig(await scratch.load(), true);
  assert.equal(problem?.code, "CONFIG_INVALID");
  assert.match(problem?.message ?? "", /prefix.*with 2 servers/);
  // A server that is defined twice in the same way is one server.
  scratch.write("user/.pml/config.yaml", "mcpServers: { one: { command: two } }\n");
  assert.equal(settleConfig(await scratch.load(), true).problem, undefined);
});

Deno.test("settleConfig() returns a frozen configuration", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.pml.json", FULL);
  const config = settleConfig(await scratch.load(), true);
  const frozen = (value: unknown): boolean =>
    typeof value !== "object" || value === null ||
    Object.isFrozen(value) && Object.values(value).every(frozen);
  assert.ok(frozen(config));
});

Deno.test("loadConfig() denies everything while a file is invalid, and reports each file", async () => {
  using scratch = new Scratch();
  const path = scratch.write("ws/.pml.json", '{"version": 1, "permissions": {"allow": "*"}}');
  const person = scratch.write("user/.pml/config.yaml", "limits: 3");
  const loaded = await scratch.load();
  const message = loaded.problem?.message ?? "";
  for (const at of [`"${path}:1:41"`, `"${person}:1:9"`]) assert.ok(message.includes(at), message);
  assertGolden("config/problems of two files", message, { FILE: path, USER_FILE: person });
  for (const trusted of [true, false]) {
    const config = settleConfig(loaded, trusted);
    assert.equal(config.problem, loaded.problem);
    assert.deepEqual(texts(config.rules.deny), ["*"]);
    assert.equal(config.rules.deny[0]?.source, path);
    assert.deepEqual(config.rules.allow, []);
  }
});

Deno.test("loadConfig() denies everything while a file above is bad", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.git", "");
  const above = scratch.write("ws/.pml.json", "{");
  scratch.write("ws/a/.pml.json", '{"version": 1}');
  const { problem } = await loadConfig(scratch.environment(), join(scratch.ws, "a"));
  assert.equal(problem?.code, "CONFIG_INVALID");
  assert.ok(problem?.message.includes(above));
});

Deno.test("loadConfig() never throws for want of a workspace", async () => {
  using scratch = new Scratch();
  const loaded = await scratch.load({ PML_WORKSPACE: join(scratch.root, "missing") });
  assert.equal(loaded.problem?.code, "CONFIG_INVALID");
  assert.ok(loaded.workspaceError);
  assert.deepEqual(texts(settleConfig(loaded, true).rules.deny), ["*"]);
  const gone = await loadConfig(scratch.environment(), join(scratch.root, "gone"));
  assert.equal(gone.problem?.code, "CONFIG_INVALID");
});

Deno.test("loadConfig() narrows the workspace, inside it only", async () => {
  using scratch = new Scratch();
  Deno.mkdirSync(join(scratch.ws, "sub"));
  Deno.symlinkSync(scratch.user, join(scratch.ws, "out"));
  scratch.write("ws/file", "");
  const at = async (workspace: string) => {
    scratch.write("ws/.pml.json", JSON.stringify({ version: 1, workspace }));
    return settleConfig(await scratch.load(), false);
  };
  assert.equal((await at("sub")).workspace, join(scratch.ws, "sub"));
  assert.equal((await at(".")).workspace, scratch.ws);
  for (const bad of ["out", "missing", "file"]) {
    assert.equal((await at(bad)).problem?.code, "CONFIG_INVALID", bad);
    assert.equal((await at(bad)).workspace, scratch.ws);
  }
});

Deno.test("loadConfig() does not begin the workspace within a folder that names protect", async () => {
  using scratch = new Scratch();
  scratch.write("ws/.git/hooks/x", "");
  scratch.write("ws/sub/.github/workflows/x", "");
  for (const workspace of [".git", ".git/hooks", "sub/../.git", "sub/.github/workflows"]) {
    scratch.write("ws/.pml.json", JSON.stringify({ version: 1, workspace }));
    const loaded = await scratch.load();
    assert.equal(loaded.folder, scratch.ws, workspace);
    assert.equal(loaded.problem?.code, "CONFIG_INVALID", workspace);
  }
});

Deno.test("loadConfig() returns the real path of a PML home behind a link", async () => {
  using scratch = new Scratch();
  const real = join(scratch.root, "dotfiles");
  Deno.mkdirSync(real);
  Deno.symlinkSync(real, scratch.home);
  assert.equal(settleConfig(await scratch.load(), false).home, real);
});

Deno.test("loadConfig() takes any bytes for rules that hold or for a problem", async () => {
  using scratch = new Scratch();
  const good = new TextEncoder().encode('{"version":1,"permissions":{"deny":["keep:me"]}}');
  const edits = fc.array(
    fc.tuple(fc.nat(good.length), fc.nat(4), fc.uint8Array({ maxLength: 4 })),
    {
      maxLength: 4,
    },
  );
  const mutated = edits.map((all) =>
    all.reduce<Uint8Array>(
      (bytes, [at, cut, put]) =>
        Uint8Array.from([...bytes.slice(0, at), ...put, ...bytes.slice(at + cut)]),
      good,
    )
  );
  await fc.assert(
    fc.asyncProperty(fc.oneof(mutated, fc.uint8Array({ maxLength: 40 })), async (bytes) => {
      scratch.write("ws/.pml.json", bytes);
      const loaded = await scratch.load();
      const { rules } = settleConfig(loaded, true);
      if (loaded.problem !== undefined) {
        assert.equal(loaded.problem.code, "CONFIG_INVALID");
        assert.deepEqual(texts(rules.deny), ["*"]);
        return;
      }
      // PML must read what any other JSON parser reads, so that no rule is lost.
      const text = new TextDecoder().decode(bytes);
      const plain = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\r\n]*/g, "").replace(
        /,(?=\s*[}\]])/g,
        "",
      );
      assert.deepEqual(texts(rules.deny), JSON.parse(plain).permissions?.deny ?? []);
    }),
    { numRuns: 400, seed: 5 },
  );
});

Deno.test({
  name: "loadConfig() denies everything while a file may not be read",
  // Permission bits do not limit the superuser.
  ignore: Deno.uid() === 0 || Deno.build.os === "windows",
  async fn() {
    using scratch = new Scratch();
    await Deno.chmod(scratch.write("ws/.pml.json", '{"version": 1}'), 0);
    const { problem } = await scratch.load();
    assert.match(problem?.message ?? "", /\(Permission denied/);
  },
});

Deno.test("settleConfig() takes the address of a hub with and without its /mcp", async () => {
  for (const end of ["", "/", "/mcp", "/mcp/"]) {
    using scratch = new Scratch();
    scratch.write("ws/.pml.json", JSON.stringify({ cloud: { url: `https://hub.example${end}` } }));
    const { cloud } = settleConfig(await scratch.load(), true);
    assert.deepEqual(cloud, { url: "https://hub.example" }, end);
  }
});
