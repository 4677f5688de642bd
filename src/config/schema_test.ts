import assert from "node:assert/strict";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/server/validators/ajv";
import userConfigJson from "../../config/config.schema.json" with { type: "json" };
import schema from "../../config/pml.schema.json" with { type: "json" };
import policyJson from "../../config/policy.schema.json" with { type: "json" };
import { isObject } from "../core/json.ts";
import type { ValueSchema } from "../core/value_schema.ts";
import { readFile as read } from "./_scratch_test.ts";
import { policySchema, userConfigSchema, workspaceSchema } from "./settings.ts";

const SERVER = { command: "x" };
const GOOD: readonly object[] = [
  {},
  { $schema: "./pml.schema.json", workspace: ".", intent: "x" },
  { workspace: "packages/a" },
  { workspace: "..a/b..c" },
  { permissions: {} },
  {
    permissions: {
      allow: ["*", "a:*", "a:b", "a.b-c_d:X/y.z", "a:B c", "a:b c(x=1)", "a:@resources", "pml:*"],
      ask: [],
      deny: [],
    },
  },
  {
    permissions: {
      allow: [
        "a:b(x=1)",
        "a:b(path=src/**, mode=r*,x=)",
        String.raw`a:b(command=git \* a\, \(b\) \\ \ )`,
        'a:b({"command":"git","args":["..","a__b:c"]})',
        "a:b(path=\u00fc__..:)",
      ],
    },
  },
  { permissions: { allow: ["a:@method(skills/list)"] } },
  { private_mcps: { a: { type: "deno", path: "/abs/x.ts" } } },
  { private_mcps: { "My Server": { type: "stdio", install: { command: "x" }, confine: true } } },
  {
    private_mcps: {
      a: {
        ...{ type: "stdio", fqdn: "acme.a", version: "1.0.0", description: "A", warnings: ["w"] },
        ...{ integrity: "sha256-0", routing: "local", env_required: ["A_KEY"] },
        install: { command: "x", env_required: ["B_KEY"] },
        tools: [{ name: "t", inputSchema: {} }, "u"],
      },
      b: { type: "http", url: "https://x/", version: "1.0.0", tools: [{ name: "t" }] },
    },
  },
  { private_mcps: { a: { type: "http", url: "http://host:1/x", headers: { "X-A": "${B:-c}" } } } },
  { mcpServers: { a: { type: "stdio", command: "x", args: ["-y"], cwd: "." } } },
  {
    mcpServers: { a: { ...SERVER, timeout: 3, description: "", autoApprove: [], disabled: true } },
  },
  { mcpServers: { a: { type: "streamable-http", url: "https://x/" } } },
  { mcpServers: { a: { url: "https://x/", oauth: { client_id: "b", redirect_port: 80 } } } },
  { mcpServers: { a: { url: "${BASE:-https://x}/mcp" }, b: { url: "http://x:${PORT}/" } } },
  // Only the server itself fails.
  { private_mcps: { a: { type: "http", url: "file:///etc/passwd" } } },
  { mcpServers: { a: { ...SERVER, cwd: "${workspaceFolder}", envFile: ".env" } } },
  { mcpServers: { a: { ...SERVER, tools: ["b"] }, b: { ...SERVER, tools: {} } } },
  {
    mcpServers: {
      a: { ...SERVER, tools: { "*": { disabled: true }, b: {}, "odd!": { rename: "even" } } },
      c: {
        url: "https://x/",
        tools: { d: { description: "", arguments: { e: [null, { f: 1 }] } } },
      },
    },
    private_mcps: {
      g: { type: "deno", path: "x", tools: { h: { disabled: false } } },
      i: { type: "stdio", install: { command: "x" }, tools: { j: { arguments: {} } } },
      k: { type: "http", url: "https://x/", tools: { l: { rename: "a b" } } },
    },
  },
  {
    registries: [
      "https://x.y/mcp",
      "mcp+https://x.y",
      "http://127.0.0.1:99/mcp",
      "mcp+http://[::1]:9/",
    ],
  },
  { registries: [{ url: "https://x.y", token_env: "T", public_key: "k" }] },
  { cloud: { url: "https://x.y" } },
  { grants: { filesystem: { read: ["../x"], write: [], net: ["a.b"], run: ["git"], env: ["A"] } } },
  { gateway: { tools_exposure: "whatever", meta_tools: ["search", "execute_code"], prefix: true } },
  { gateway: { long_names: true } },
  { gateway: { name: "Acme tools", version: "2026.11" } },
  { gateway: { hybrid: { semantic_threshold: 0.5, max_underlying_tools: 3 } } },
  {
    gateway: {
      hybrid: {
        expose_meta_tools: false,
        expose_underlying_tools: true,
        apply_semantic_filter: false,
        max_tokens: 0,
        whitelisted_tools: ["*", "a:*", "a:b", "pml:x"],
        blacklisted_tools: [],
      },
    },
  },
];
const BAD: readonly object[] = [
  { version: 0 },
  { version: true },
  { version: null },
  { permision: {} },
  { Permissions: {} },
  { workspace: "" },
  { workspace: "/abs" },
  { workspace: "../x" },
  { workspace: "a/.." },
  { workspace: "C:\\x" },
  { permissions: [] },
  { permissions: { allow: {} } },
  { permissions: { allow: [[]] } },
  ...[
    ...[
      "",
      ":",
      "**",
      "a",
      "a:",
      ":b",
      "a:b:c",
      "{a,b}",
      "!x",
      "[a-z]",
      "*:read",
      "file*",
      "fs:r*",
    ],
    ...[
      "a__b:c",
      "a..b:c",
      "search:x",
      "search:*",
      "execute_x:y",
      "A:b",
      "-a:b",
      "a:b\n",
      "a:@x",
      " *",
    ],
    ...["a:b()", "a:b(x)", "a:b(x=1,)", "a:b(x= 1)", "a:b(x=1 )", "a:b(x=1", "a:b(x=(1))"],
    ...["a:*(x=1)", "*(x=1)", "a:@roots(x=1)", "a:b(x=1)y", "a:b([1])", "a:b({)", "a:b(x=\n)"],
    ...[`a:b(x=${"y".repeat(4_096)})`, "a__b:c(x=1)", "batch:b({})", "a:b (x=1)", "a:b(x=\\y)"],
    ...["fs\u0435:b", "a:\u200bb", "a:b*", "a: b", "a:b ", "a:b  c", `a:${"x".repeat(129)}`],
  ].map((rule) => ({ permissions: { deny: [rule] } })),
  { private_mcps: [] },
  { private_mcps: { a: {} } },
  { private_mcps: { a: "x" } },
  { private_mcps: { a: { type: "node" } } },
  { private_mcps: { a: { type: "deno" } } },
  { private_mcps: { a: { type: "deno", path: "" } } },
  { private_mcps: { a: { type: "deno", path: "https://x/y.ts" } } },
  { private_mcps: { a: { type: "deno", path: "x", command: "y" } } },
  { private_mcps: { a: { type: "stdio" } } },
  { private_mcps: { a: { type: "stdio", command: "x" } } },
  { private_mcps: { a: { type: "stdio", install: { command: " " } } } },
  { private_mcps: { a: { type: "stdio", install: { command: "x", args: "y" } } } },
  { private_mcps: { a: { type: "http" } } },
  { private_mcps: { a: { type: "http", url: " " } } },
  { private_mcps: { a: { type: "http", url: 1 } } },
  { private_mcps: { pml: { type: "http", url: "https://x.y" } } },
  { private_mcps: { "": { type: "http", url: "https://x.y" } } },
  { mcpServers: { a: {} } },
  { mcpServers: { a: [] } },
  { mcpServers: { a: { ...SERVER, disabledTools: ["x"] } } },
  ...[
    { b: true },
    { b: { enabled: false } },
    { b: { disabled: 1 } },
    { b: { rename: "" } },
    { b: { rename: "a:b" } },
    { b: { rename: "x".repeat(129) } },
    { b: { description: 1 } },
    { b: { arguments: [] } },
    { "*": { rename: "x" } },
    [1],
    "b",
  ].map((tools) => ({ mcpServers: { a: { ...SERVER, tools } } })),
  { private_mcps: { a: { type: "deno", path: "x", tools: ["b"] } } },
  { private_mcps: { a: { type: "deno", path: "x", tools: { b: { rename: 1 } } } } },
  { mcpServers: { a: { ...SERVER, url: "https://x.y" } } },
  { mcpServers: { a: { ...SERVER, confine: "yes" } } },
  { mcpServers: { a: { ...SERVER, type: "http" } } },
  { mcpServers: { a: { ...SERVER, env: { "A=B": "x" } } } },
  { mcpServers: { a: { ...SERVER, env: { A: 1 } } } },
  { mcpServers: { a: { url: "https://x/", headers: { "A b": "x" } } } },
  { mcpServers: { a: { url: "https://x/", headers: { A: "x\r\nB: y" } } } },
  { registries: "https://x.y" },
  { registries: ["ftp://x.y"] },
  { registries: ["http://x.y"] },
  { registries: ["mcp+http://x.y"] },
  { registries: ["http://127.0.0.1.evil.com/"] },
  { registries: [{}] },
  { registries: [{ url: "https://x.y", token_env: "A B" }] },
  { registries: [{ url: "https://x.y", token_env: "PML_API_KEY" }] },
  { registries: [{ url: "https://x.y", token_env: "pml_token" }] },
  { cloud: "https://x.y" },
  { cloud: { url: "http://169.254.169.254/" } },
  { grants: { "a:b": {} } },
  { grants: { a: { ffi: ["x"] } } },
  { grants: { a: { read: [""] } } },
  { grants: { a: { net: true } } },
  { gateway: { tools_exposure: 1 } },
  { gateway: { exposure: "meta_only" } },
  { gateway: { meta_tools: ["shell"] } },
  { gateway: { prefix: 0 } },
  { gateway: { hybrid: [] } },
  { gateway: { hybrid: { max_tools: 3 } } },
  { gateway: { hybrid: { max_underlying_tools: -1 } } },
  { gateway: { hybrid: { max_underlying_tools: 1.5 } } },
  { gateway: { hybrid: { semantic_threshold: 1.1 } } },
  { gateway: { hybrid: { semantic_threshold: "0.5" } } },
  { gateway: { hybrid: { whitelisted_tools: "a:b" } } },
  { gateway: { hybrid: { whitelisted_tools: ["a:b(x=1)"] } } },
  { gateway: { hybrid: { blacklisted_tools: ["a:@prompts"] } } },
  { gateway: { hybrid: { blacklisted_tools: ["a:b*"] } } },
  ...[1, "", " ", "a\nb", "a\u202eb", "x".repeat(129)]
    .flatMap((label) => [{ gateway: { name: label } }, { gateway: { version: label } }]),
  { intent: 1 },
  { intent: "x".repeat(2001) },
];

const validate = new AjvJsonSchemaValidator().getValidator(schema as object);

Deno.test("the parser and pml.schema.json accept the same good files", async () => {
  // The version may be missing.
  for (const value of GOOD.flatMap((more) => [more, { version: 1, ...more }])) {
    const { error } = await read(JSON.stringify(value));
    assert.equal(error?.message, undefined, JSON.stringify(value));
    const said = validate(value);
    assert.ok(said.valid, `${JSON.stringify(value)}: ${said.errorMessage}`);
  }
});

Deno.test("the parser and pml.schema.json refuse the same bad files", async () => {
  for (const more of BAD) {
    const value = { version: 1, ...more };
    const { file, error } = await read(JSON.stringify(value));
    assert.equal(file, undefined, JSON.stringify(more));
    assert.equal(error?.code, "CONFIG_INVALID");
    assert.equal(validate(value).valid, false, JSON.stringify(more));
  }
});

/** A `config.yaml` with every key but those that `.pml.json` has, too. */
const USER_CONFIG: readonly object[] = [
  {
    limits: { call_ms: 1_000, inline_bytes: 0, heap_mb: 64 },
    approvals: { channel: "page" },
    ...{ ask_for_keys: true, journal: "best_effort", memory: false, warm: true },
    sandbox: { os_layer: "landlock" },
    mcpServers: {
      a: { url: "https://x.y/", ca: "ca.pem", cert: "~/c.pem", key: "~/k.pem" },
      b: { type: "sse", url: "https://x.y/", oauth: { client_id: "a", client_secret: "${B}" } },
      c: { command: "x", env: { A: "b" }, tools: { t: { disabled: true } } },
    },
    grants: { a: { net: ["x.y"] } },
    network: { proxy: "http://${A}:${B}@x.y:3128", no_proxy: ["*.x.y", "10.0.0.0/8", "::1/128"] },
    search: { model: "~/model" },
    workspaces: ["/a", "~/b"],
    workflow: { confidence: 0.5 },
    sampling: {
      ...{ provider: "openai", model: "m", models: ["n"], base_url: "https://x.y/v1" },
      ...{ prefer: "provider", max_tokens: 1, max_turns: 1, requests_per_minute: 1 },
      ...{ tokens_per_day: 1, money_per_day: 0.5, allowed_tool_patterns: ["a:*"] },
      prices: { input_per_million: 1.5, output_per_million: 0 },
    },
    toolsets: { small: ["a:b"] },
    client_toolsets: { "Some client": "small" },
    client_meta: ["a/b"],
    client_name: false,
    identities: {
      ci: { token: "0".repeat(64), permissions: { allow: ["a:*"] }, rates: { "a:b": "6/hour" } },
      me: { token: "f".repeat(64), toolset: "small", keys: false },
    },
    serve: { sealing_key: "${KEY}", replica_address: "[::1]:80" },
    oauth: {
      client_metadata_url: "https://x.y/client.json",
      issuer_hosts: { "https://x.y": ["z.y", "A.b:443"] },
    },
    telemetry: {},
  },
  { memory: { enabled: false }, network: { proxy: "http://x.y:80/" } },
];
const POLICY: readonly object[] = [
  {
    permissions: { ask: ["a:*"], deny: ["pml:*", "a:@method(x/y)"] },
    forbid: ["stdio", "unconfined"],
    registries: ["mcp+https://x.y"],
    hosts: ["*.x.y", "[::1]", "X"],
  },
];
/** Values that take the place of each value, of which many are wrong there. */
const OTHERS = [
  ...[null, true, 0, 1, -1, 1.5, 1e9, "", " ", "x", "X y", "a:b", "a:*", "a__b", "https://x.y"],
  ...[
    "http://x.y",
    "http://u:p@127.0.0.1/",
    "../x",
    "-----",
    "60/minute",
    "\u0456",
    "PML_X",
    "*.x",
  ],
  ...["x\ny", "stdio", "http", "1.2.3.4:5", [], ["x"], [""], [1], {}, { x: 1 }, { enabled: 0 }],
];

/** Returns copies of a value, each with one change. */
function* changed(value: unknown): Generator<unknown> {
  yield* OTHERS;
  if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) {
      for (const other of changed(one)) yield value.with(index, other);
    }
  } else if (isObject(value)) {
    yield { ...value, unknown_key: 1 };
    for (const [key, one] of Object.entries(value)) {
      const { [key]: _, ...rest } = value;
      yield rest;
      yield { ...rest, [`${key}x`]: one };
      yield { ...rest, "-": one };
      for (const other of changed(one)) yield { ...value, [key]: other };
    }
  }
}

const FILES: readonly (readonly [string, ValueSchema<unknown>, object, readonly object[]])[] = [
  ["config/pml.schema.json", workspaceSchema, schema, GOOD],
  ["config/config.schema.json", userConfigSchema, userConfigJson, [
    ...GOOD.filter(isShared),
    ...USER_CONFIG,
  ]],
  ["config/policy.schema.json", policySchema, policyJson, POLICY],
];
for (const [name, wanted, json, good] of FILES) {
  Deno.test(`PML and ${name} accept the same values after any change of a good file`, () => {
    const accepts = new AjvJsonSchemaValidator().getValidator(json);
    let count = 0;
    for (const file of good) {
      assert.ok(isValid(wanted, file), JSON.stringify(file));
      for (const value of changed(file)) {
        const { valid, errorMessage } = accepts(value);
        assert.equal(isValid(wanted, value), valid, `${JSON.stringify(value)}: ${errorMessage}`);
        count++;
      }
    }
    assert.ok(count > 500, `${count} values were compared`);
  });
}

function isShared(file: object): boolean {
  return isValid(userConfigSchema, file);
}

function isValid(wanted: ValueSchema<unknown>, value: unknown): boolean {
  return wanted(structuredClone(value), { path: [], wrong: () => {} });
}
