import assert from "node:assert/strict";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import type { ConfigProblem } from "./_problem.ts";
import { type Read, readAt, Scratch } from "./_scratch_test.ts";
import { limitsOf } from "./limits.ts";
import { readUserConfig, type UserConfig } from "./user_config.ts";

async function read(content: string): Promise<Read<UserConfig>> {
  using scratch = new Scratch();
  return await readAt(scratch.write("config.yaml", content), readUserConfig);
}

/** Text, line, column, key, found (a part of it), wanted. */
const BAD: readonly (readonly [string, number, number, string, string, string])[] = [
  ["- a", 1, 1, "", "an array", "an object"],
  ["x", 1, 1, "", "a string", "an object"],
  ["permissions:\n  deny: '*'", 2, 9, "permissions.deny", '"*" (a string)', "an array of rules"],
  ["permissions:\n  deny:", 2, 8, "permissions.deny", "null", "an array of rules"],
  ["limits:\n  call_ms: 1", 2, 12, "limits.call_ms", "1 (a number)", "from 100 to 86400000"],
  ["limits:\n  call_ms: 60s", 2, 12, "limits.call_ms", '"60s" (a string)', "whole number"],
  ["limits: {batch: .inf}", 1, 17, "limits.batch", "Infinity", "whole number"],
  ["limits: {batch: 1.5}", 1, 17, "limits.batch", "1.5", "whole number"],
  ["limits: {callMs: 1000}", 1, 18, "limits.callMs", "an unknown key", "call_ms"],
  ["private_mcps: {}", 1, 15, "private_mcps", "an unknown key", "one of permissions"],
  ["__proto__: {}", 1, 12, "__proto__", "an unknown key", "one of permissions"],
  ["gateway: {}\ngateway: {}", 2, 1, "gateway", "twice (lines 1 and 2)", "each key once"],
  ['env: {1: a, "1": b}', 1, 13, "1", "twice (lines 1 and 1)", "each key once"],
  ['mcpServers:\n  true: {}\n  "true": {}', 3, 3, "true", "lines 2 and 3", "each key once"],
  ["permissions: {deny: [raw:日本]}", 1, 22, "permissions.deny[0]", "raw", "raw:tool_cf2abf0c5be3"],
  ["search: &x {}\ngateway: *x", 2, 10, "", "an alias", "the value itself"],
  ["permissions: {&k deny: [a:b], *k : []}", 1, 31, "", "an alias", "the value itself"],
  ["gateway: !mine {}", 1, 10, "", "invalid YAML", "YAML 1.2"],
  ["permissions: {deny: [a:b]}\n---\npermissions: {}", 2, 1, "", "multiple documents", "YAML 1.2"],
  ["<<<<<<< HEAD\nlimits: {}\n=======\n>>>>>>> b", 1, 1, "", "invalid YAML", "YAML 1.2"],
  ["limits: {}\n<<<<<<< HEAD\n", 2, 1, "", "invalid YAML", "YAML 1.2"],
  ["limits: [", 1, 10, "", "invalid YAML", "YAML 1.2"],
  ["? [a]\n: 1", 1, 1, "[ a ]", "an unknown key", "one of permissions"],
  ["1: 2", 1, 1, "1", "an unknown key", "one of permissions"],
  ["sandbox: {os_layer: on}", 1, 21, "sandbox.os_layer", '"on"', "one of auto, landlock"],
  ["journal: never", 1, 10, "journal", '"never"', "one of required, best_effort"],
  ["approvals: {channel: fax}", 1, 22, "approvals.channel", '"fax"', "one of client"],
];

Deno.test("readUserConfig() reports line, column, key, value and expected type of problems", async () => {
  for (const [text, line, column, key, found, wanted] of BAD) {
    const { error } = await read(text);
    const problems = error?.detail?.problems;
    assert.ok(Array.isArray(problems), text);
    const first: ConfigProblem = problems[0];
    assert.deepEqual([first.line, first.column], [line, column], text);
    assert.equal(first.key, key, text);
    assert.ok(first.found.includes(found), `${text}: ${first.found}`);
    assert.ok(first.wanted.includes(wanted), `${text}: ${first.wanted}`);
    assert.equal(error?.code, "CONFIG_INVALID");
  }
});

Deno.test("readUserConfig() reports a text that ends too early once", async () => {
  const { error } = await read("limits:\n  a: [1, {b: \n");
  assert.equal((error?.detail?.problems as readonly ConfigProblem[]).length, 1);
});

Deno.test("readUserConfig() repeats no misplaced secret", async () => {
  const secret = "MIIE-a-secret-of-the-person";
  const wrong = [
    { oauth: { client_secret: secret } },
    { cert: "me.pem", key: `-----BEGIN PRIVATE KEY-----\n${secret}` },
  ];
  for (const beside of wrong) {
    const mcpServers = { far: { url: "https://far.example/mcp", ...beside } };
    const { error } = await read(JSON.stringify({ mcpServers }));
    assert.match(error?.message ?? "", /mcpServers.far.*found a string, wanted/);
    assert.doesNotMatch(Deno.inspect(error), /a-secret-of/);
  }
});

Deno.test("readUserConfig() reads rules, limits and single settings", async () => {
  const { file: userConfig, error } = await read(
    "# mine\npermissions:\n  deny: ['shell:*']\n  allow: [a:b]\n" +
      "limits:\n  call_ms: 1000\n  heap_mb: 64\ngateway: {tools_exposure: full_proxy}\n" +
      "approvals: {channel: terminal}\nsandbox: {os_layer: required}\njournal: best_effort\n",
  );
  assert.equal(error, undefined);
  assert.deepEqual(userConfig.settings.limits, { ...limitsOf({}), callMs: 1000, heapMb: 64 });
  assert.deepEqual(userConfig.permissions.deny.map(({ pattern }) => pattern.text), ["shell:*"]);
  assert.equal(userConfig.permissions.deny[0]?.source, userConfig.path);
  assert.deepEqual(userConfig.gateway, { exposure: "full_proxy" });
  assert.equal(userConfig.settings.channel, "terminal");
  assert.equal(userConfig.settings.osLayer, "required");
  assert.equal(userConfig.settings.journal, "best_effort");
  const { settings: defaults } = (await read("limits: {}\n")).file;
  assert.deepEqual([defaults.journal, defaults.warm], ["required", false]);
  assert.equal((await read("warm: true\n")).file.settings.warm, true);
});

Deno.test("readUserConfig() finds the folder of a model from the file, or from the home", async () => {
  const saying = async (text: string) => (await read(`search: {model: ${text}}`)).file;
  const { path, settings: { model } } = await saying("models/x");
  assert.equal(model, join(dirname(path), "models/x"));
  assert.equal((await saying("/models/x")).settings.model, "/models/x");
  assert.equal((await saying("~/x")).settings.model, join(homedir(), "x"));
  const { error } = await read("search: {model: 'https://x.y/z'}");
  assert.match(error?.message ?? "", /search\.model/);
});

Deno.test("readUserConfig() treats an empty file as no settings", async () => {
  for (const text of ["", "# only this\n"]) {
    const { file: userConfig, error } = await read(text);
    assert.equal(error, undefined);
    assert.deepEqual(userConfig.settings.limits, limitsOf({}));
  }
});

Deno.test("readUserConfig() says of keys that come later that they are ignored", async () => {
  const { error, warnings } = await read("telemetry: true\n");
  assert.equal(error, undefined);
  assert.equal(warnings.length, 1);
  assert.match(warnings.join(), /"telemetry" is ignored for now/);
});

Deno.test("readUserConfig() takes a model for sampling, with defaults", async () => {
  const { file, error } = await read("sampling: {provider: anthropic, model: m}\n");
  assert.equal(error, undefined);
  assert.deepEqual(file.settings.sampling, {
    provider: "anthropic",
    model: "m",
    models: [],
    baseUrl: "https://api.anthropic.com",
    isCompatible: false,
    key: "ANTHROPIC_API_KEY",
    prefer: undefined,
    maxTokens: 4_096,
    maxTurns: 8,
    requestsPerMinute: 10,
    tokensPerDay: 500_000,
    prices: undefined,
    moneyPerDay: undefined,
    tools: [],
  });
  const local = "{provider: openai, model: m, base_url: 'http://127.0.0.1:9/v1/'}";
  const { file: { settings: { sampling } } } = await read(`sampling: ${local}\n`);
  assert.equal(sampling?.baseUrl, "http://127.0.0.1:9/v1");
  assert.equal(sampling?.isCompatible, true);
});

Deno.test("readUserConfig() reports problems of sampling", async () => {
  const wrong = {
    "{}": /sampling\.provider[^]*sampling\.model/,
    "{provider: x, model: m}": /sampling\.provider.*anthropic/,
    "{provider: openai, model: m, base_url: 'http://example.com'}": /sampling\.base_url.*https/,
    "{provider: openai, model: m, money_per_day: 1}":
      /money_per_day.*together with sampling\.prices/,
    "{provider: openai, model: m, allowed_tool_patterns: ['git:@sampling']}": /allowed_tool_patt/,
    "{provider: openai, model: m, max_turns: 0}": /max_turns.*from 1 to 100/,
    "{provider: openai, model: m, tokens: 1}": /wanted "max_tokens"/,
    "{provider: openai, model: m, xyz: 1}": /one of provider, model/,
  };
  for (const [said, expected] of Object.entries(wrong)) {
    const { error } = await read(`sampling: ${said}\n`);
    assert.match(`${error?.message} ${JSON.stringify(error?.detail)}`, expected, said);
  }
});

Deno.test("readUserConfig() never throws, and never drops a deny without a word", async () => {
  const words = ["permissions", ":", " ", "\n", "  ", "deny", "- ", "a:b", "'", "[", "]", "{", "}"];
  const unit = fc.constantFrom(
    ...words,
    ",",
    "&x",
    "*x",
    "---",
    "|",
    "?",
    "#",
    "\t",
    '"',
    "!",
    "%",
  );
  await fc.assert(
    fc.asyncProperty(fc.string({ unit, maxLength: 30 }), async (noise) => {
      const { file: userConfig, error } = await read(`permissions:\n  deny: [keep:me]\n${noise}`);
      const kept = userConfig.permissions.deny.some(({ pattern }) => pattern.text === "keep:me");
      assert.ok(kept || error?.code === "CONFIG_INVALID");
    }),
    { numRuns: 300, seed: 3 },
  );
});
