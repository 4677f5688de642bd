import assert from "node:assert/strict";
import fc from "fast-check";
import type { JsonObject } from "../core/json.ts";
import { PmlError } from "../core/errors.ts";
import type { CodeManifest, Manifest } from "../servers/manifest.ts";
import type { CloudManifest } from "../servers/cloud/kind.ts";
import type { HttpManifest } from "../servers/http/kind.ts";
import type { StdioManifest } from "../servers/stdio/kind.ts";
import { parseFqdn } from "./fqdn.ts";
import {
  manifestHash,
  manifestVariables,
  type OmittedTool,
  parseManifest,
  requiredVariables,
} from "./manifest.ts";

const URL_HERE = "https://registry.example/mcp";
const HASH = `sha256-${"a".repeat(64)}`;
const BASE = { version: "1.2.0", description: "Does things", tools: ["analyze"] };
const DENO = { ...BASE, fqdn: "serena", type: "deno", integrity: HASH, permissions: {} };
const STDIO = {
  ...BASE,
  fqdn: "serena",
  type: "stdio",
  install: { command: "uvx", args: ["serena@1.2.0"], env_required: ["SERENA_TOKEN"] },
};
const HTTP = { ...BASE, fqdn: "serena", type: "http", url: "https://serena.example/mcp" };
const CLOUD = { ...BASE, fqdn: "serena", type: "cloud", proxy_to: "https://pml.casys.ai/x" };

/** A manifest of any kind. */
type AnyManifest =
  & Manifest
  & Partial<Omit<CodeManifest & StdioManifest & HttpManifest & CloudManifest, keyof Manifest>>;

function parse(json: unknown, asked = "serena", named: readonly string[] = []): AnyManifest {
  return parseManifest(json, {
    url: URL_HERE,
    asked: parseFqdn(asked),
    plainHttpHosts: new Set(named),
  });
}

function refuses(json: unknown, says: RegExp, asked = "serena"): void {
  assert.throws(() => parse(json, asked), (error) => {
    assert.ok(error instanceof PmlError, String(error));
    assert.equal(error.code, "REGISTRY_BAD_RESPONSE", error.message);
    assert.match(error.message, says);
    assert.match(error.message, /"serena" of "[^"]*registry\.example/);
    return true;
  }, JSON.stringify(json)?.slice(0, 200));
}

Deno.test("parseManifest() parses the four kinds", () => {
  const deno = parse({
    ...DENO,
    permissions: { read: ["."] },
    env_required: ["B", "A", "B"],
    routing: "local",
    proxy_to: null,
    tools: [
      "serena:analyze",
      { name: "serena:find", inputSchema: {}, permissions: { read: ["src"], net: ["a.example"] } },
    ],
  });
  assert.equal(deno.kind, "deno");
  assert.deepEqual(deno.permissions, {
    read: [".", "src"],
    write: [],
    net: ["a.example"],
    run: [],
    env: [],
  });
  assert.deepEqual(deno.tools, [
    { name: "analyze", definition: undefined },
    { name: "find", definition: { name: "find", inputSchema: { type: "object" } } },
  ]);
  assert.deepEqual(deno.envRequired, ["A", "B"]);
  const stdio = parse({
    ...STDIO,
    env_required: ["OTHER"],
    install: { ...STDIO.install, env: { LEVEL: "info", KEY: "x ${SERENA_KEY:-none}" } },
  });
  assert.equal(stdio.kind, "stdio");
  assert.deepEqual([stdio.command, stdio.args], ["uvx", ["serena@1.2.0"]]);
  assert.deepEqual(stdio.envRequired, ["OTHER", "SERENA_TOKEN"]);
  assert.deepEqual(manifestVariables(stdio), ["OTHER", "SERENA_KEY", "SERENA_TOKEN"]);
  const http = parse({ ...HTTP, headers: { Authorization: "Bearer ${SERENA_TOKEN}" } });
  assert.equal(http.kind, "http");
  assert.equal(http.url, "https://serena.example/mcp");
  assert.deepEqual(manifestVariables(http), ["SERENA_TOKEN"]);
  const cloud = parse(CLOUD);
  assert.equal(cloud.kind, "cloud");
  assert.equal(cloud.proxyTo, "https://pml.casys.ai/x");
});

Deno.test("an entry without a type is refused", () => {
  const { type: _, ...rest } = DENO;
  refuses(rest, /type is missing/);
});

Deno.test("requiredVariables() returns all required variables of an entry, without those that have a default", () => {
  const stdio = parse({
    ...STDIO,
    install: {
      command: "uvx",
      args: ["serena@1.2.0", "--key=${ARG_KEY}"],
      env: { A: "x ${FREE_KEY:-none} ${GIVEN_KEY}" },
      env_required: ["SERENA_TOKEN"],
    },
  });
  assert.deepEqual(requiredVariables(stdio), ["ARG_KEY", "GIVEN_KEY", "SERENA_TOKEN"]);
  const headers = { Authorization: "Bearer ${SERENA_TOKEN}", "X-Team": "${TEAM:-}" };
  assert.deepEqual(requiredVariables(parse({ ...HTTP, headers })), ["SERENA_TOKEN"]);
  assert.deepEqual(requiredVariables(parse({ ...DENO, permissions: { env: ["MAYBE"] } })), []);
});

Deno.test("parseManifest() accepts warnings of any form as a limited number of visible lines", () => {
  const lines = (warnings: unknown) => parse({ ...STDIO, warnings }).warnings;
  assert.deepEqual(lines({ creates_dotfiles: [".serena", ".x"], slow: true, none: null }), [
    "creates dotfiles: .serena, .x",
    "slow",
  ]);
  assert.deepEqual(lines(["one", "two\n\u001b[31mred\u202e"]), ["one", "two [31mred"]);
  assert.deepEqual(lines("only one"), ["only one"]);
  assert.deepEqual(lines(undefined), []);
  const many = lines(Array.from({ length: 50 }, () => "x".repeat(9_000)));
  assert.equal(many.length, 21);
  assert.equal(many.at(-1), "and 30 more");
  assert.ok(many.every((line) => line.length <= 300));
});

Deno.test("parseManifest() rejects other entries and invalid values, and names the key", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`);
  const cases: [unknown, RegExp][] = [
    [null, /is missing, .*an object/],
    [[], /wanted an object/],
    ["x", /wanted an object/],
    [{ ...DENO, fqdn: "evil" }, /fqdn is "evil", wanted "serena"/],
    [{ ...DENO, fqdn: undefined }, /fqdn is missing/],
    [{ ...DENO, fqdn: "serena@9.9.9" }, /fqdn/],
    [{ ...DENO, type: "exe" }, /type is .*exe.* stdio, http or cloud/],
    [{ ...DENO, version: 1 }, /version is 1, wanted a version/],
    [{ ...DENO, version: "../1" }, /version/],
    [{ ...DENO, integrity: HASH.toUpperCase() }, /integrity/],
    [{ ...DENO, integrity: undefined }, /integrity is missing/],
    [{ ...DENO, permissions: { read: "." } }, /permissions\.read/],
    [{ ...DENO, permissions: { ffi: ["x"] } }, /permissions\.ffi/],
    [{ ...DENO, permissions: { env: ["PML_API_KEY"] } }, /permissions\.env/],
    [{ ...DENO, permissions: { read: ["a\nb"] } }, /permissions\.read/],
    [{ ...DENO, tools: Array(1_001).fill("x") }, /tools/],
    [{ ...DENO, tools: {} }, /tools/],
    [{ ...DENO, env_required: "A" }, /env_required/],
    [{ ...DENO, routing: "everywhere" }, /routing/],
    [{ ...DENO, description: 7 }, /description is 7/],
    [{ ...DENO, deep }, /nested too deep/],
    [{ ...DENO, description: "\ud800" }, /not valid JSON/],
    [{ ...DENO, more: JSON.parse("1e999") }, /not valid JSON/],
    [{ ...STDIO, install: undefined }, /install is missing/],
    [{ ...STDIO, install: { command: "npx", args: "x" } }, /install\.args/],
    [{ ...STDIO, install: { command: "npx", args: ["a\u0000"] } }, /install\.args/],
    [{ ...STDIO, install: { ...STDIO.install, env: { A: 1 } } }, /install\.env\.A/],
    [{ ...STDIO, install: { ...STDIO.install, env: { A: "${B" } } }, /install\.env\.A/],
    [{ ...HTTP, url: undefined }, /url is missing/],
    [{ ...HTTP, headers: { "Host": "x" } }, /headers/],
    [{ ...HTTP, headers: { "x-pml-key-OTHER": "x" } }, /headers/],
    [{ ...HTTP, headers: { "A": "b\r\nC: d" } }, /headers\.A/],
  ];
  for (const [json, says] of cases) refuses(json, says);
  refuses({ ...DENO, version: "1.3.0" }, /version is .*1\.3\.0.*wanted "1\.2\.0"/, "serena@1.2.0");
  assert.equal(parse({ ...DENO, version: "1.3.0" }, "serena@latest").version, "1.3.0");
  assert.equal(parse({ ...DENO, fqdn: "serena@1.2.0" }).fqdn, "serena");
});

Deno.test("parseManifest() rejects commands that could be more than one program", () => {
  const commands = [
    ...["npx; rm -rf ~", "$(id)", "`id`", "npx\nid", "-x", "--eval", "x.BAT", "x.cmd", "setup.ps1"],
    ...["/bin/sh", "../x", "a b", "sh", "bash", "cmd", "CMD.EXE", "powershell", "", "a&b", "a|b"],
    ...["env", "sudo", "C:\\x", "npx\u0000", "nрx", "x".repeat(200), 7, null, ["npx"]],
  ];
  for (const command of commands) {
    refuses({ ...STDIO, install: { command, args: [] } }, /install\.command/);
  }
  for (const command of ["npx", "uvx", "bunx", "npm", "docker", "serena-mcp", "node"]) {
    // Shell characters mean nothing in an argument, because no shell runs.
    const args = ["-y", "x@1", "$(id); `id`"];
    const manifest = parse({ ...STDIO, install: { command, args } });
    assert.deepEqual(manifest.args, args);
  }
});

Deno.test("parseManifest() rejects variables that change PML, loaders or installers", () => {
  const steering = [
    ...[
      "PML_API_KEY",
      "pml_home",
      "LD_PRELOAD",
      "DYLD_INSERT_LIBRARIES",
      "NODE_OPTIONS",
      "DENO_DIR",
    ],
    ...[
      "PATH",
      "Path",
      "HOME",
      "HTTPS_PROXY",
      "npm_config_registry",
      "BASH_ENV",
      "GIT_SSH_COMMAND",
    ],
    ...["JAVA_TOOL_OPTIONS", "PYTHONUSERBASE", "CURL_HOME", "NODE_REPL_EXTERNAL_MODULE"],
    ...["PYTHONPATH", "A-B", "A=B", "1A", "", "A\n", "a".repeat(200)],
  ];
  for (const name of steering) {
    refuses({ ...STDIO, env_required: [name] }, /env_required/);
    refuses({ ...STDIO, install: { ...STDIO.install, env_required: [name] } }, /env_required/);
    refuses({ ...STDIO, install: { ...STDIO.install, env: { [name]: "x" } } }, /install\.env/);
    if (/^\w+$/.test(name)) {
      refuses({ ...HTTP, headers: { A: `\${${name}}` } }, /headers\.A/);
    }
  }
  const fine = ["GITHUB_TOKEN", "TAVILY_API_KEY", "_x", "AWS_REGION"];
  assert.deepEqual(
    parse({ ...STDIO, install: { command: "npx", env_required: fine } }).envRequired,
    [
      ...["AWS_REGION", "GITHUB_TOKEN", "TAVILY_API_KEY", "_x"],
    ],
  );
});

Deno.test("parseManifest() accepts only https URLs, and allowed local hosts", () => {
  const bad = [
    ...["http://serena.example/", "ftp://serena.example/", "file:///etc/passwd", "//x", "x"],
    ...["https://user@serena.example/", "https://u:p@serena.example/", "https://a.example/#x"],
    ...["javascript:alert(1)", "https://a.example/\nx", `https://a.example/${"x".repeat(3_000)}`],
    ...["http://127.0.0.1:1/", "http://localhost:1/", 7, ["https://a.example"]],
  ];
  for (const url of bad) {
    refuses({ ...HTTP, url }, /url/);
    refuses({ ...CLOUD, proxy_to: url }, /proxy_to/);
  }
  const here = { ...HTTP, url: "http://127.0.0.1:8080/mcp" };
  const read = parse(here, "serena", ["127.0.0.1:8080"]);
  assert.equal(read.url, "http://127.0.0.1:8080/mcp");
  assert.throws(() => parse(here, "serena", ["127.0.0.1:8081"]), /url/);
  const other = { ...HTTP, url: "http://a.example/" };
  assert.throws(() => parse(other, "serena", ["a.example"]), /url/);
});

Deno.test("parseManifest() omits tools that do not belong to the server", () => {
  const tools = [
    ...["filesystem:read_file", "serena:ok", "ok", "OK", "also", "b@d", "", 7, null, {}],
    { name: "broken", inputSchema: { type: "array" } },
    { name: "good", inputSchema: {} },
  ];
  const leftOut: OmittedTool[] = [];
  const { tools: kept } = parseManifest({ ...STDIO, tools }, {
    url: URL_HERE,
    asked: parseFqdn("serena"),
    leftOut,
  });
  const left = Object.fromEntries(leftOut.map(({ name, reason }) => [name, reason]));
  assert.deepEqual(kept.map(({ name }) => name), ["ok", "also", "good"]);
  assert.match(left["filesystem:read_file"] ?? "", /another server/);
  assert.match(left.OK ?? "", /another tool/);
  assert.match(left["b@d"] ?? "", /other characters/);
  assert.match(left.broken ?? "", /^broken\.inputSchema is .* wanted/);
  assert.match(left[""] ?? "", /no name/);
  // An action is a separate entry and cannot contain another action.
  const action = parse(
    { ...DENO, fqdn: "fs:read_json", tools: ["fs:read_json", "rm"] },
    "fs:read_json",
  );
  assert.deepEqual(action.tools.map(({ name }) => name), ["read_json"]);
  assert.equal(action.name, "fs");
});

Deno.test("manifestHash() ignores order and description and depends on everything else", () => {
  const turned = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(turned)
      : typeof value === "object" && value !== null
      ? Object.fromEntries(Object.entries(value).reverse().map(([key, one]) => [key, turned(one)]))
      : value;
  fc.assert(
    fc.property(
      fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.jsonValue({ maxDepth: 2 })),
      fc.constantFrom<JsonObject>(DENO, STDIO as never, HTTP, CLOUD),
      (schema, entry) => {
        const tool = { name: "t", inputSchema: { ...schema, type: "object" } };
        const json = { ...entry, tools: [tool, "a", "b"], warnings: ["w"] };
        const hash = manifestHash(parse(json));
        const text = JSON.stringify(turned({ ...json, tools: [..."ba", tool] }), null, 3);
        assert.equal(manifestHash(parse(JSON.parse(text))), hash);
        assert.equal(manifestHash(parse({ ...json, description: "another" })), hash);
        const others = [
          { version: "1.2.1" },
          { tools: [tool, "a"] },
          { tools: [{ ...tool, description: "x" }, "a", "b"] },
          { warnings: [] },
          { env_required: ["MORE"] },
          { routing: "cloud" },
        ];
        for (const other of others) {
          assert.notEqual(manifestHash(parse({ ...json, ...other })), hash, JSON.stringify(other));
        }
      },
    ),
    { numRuns: 50 },
  );
  const changes: [JsonObject, JsonObject][] = [
    [DENO, { integrity: `sha256-${"b".repeat(64)}` }],
    [DENO, { permissions: { net: ["a.example"] } }],
    [STDIO as never, { install: { ...STDIO.install, args: ["serena@1.2.1"] } }],
    [STDIO as never, { install: { ...STDIO.install, env: { A: "b" } } }],
    [HTTP, { url: "https://other.example/mcp" }],
    [HTTP, { headers: { A: "b" } }],
    [CLOUD, { proxy_to: "https://other.example/" }],
  ];
  for (const [entry, change] of changes) {
    assert.notEqual(manifestHash(parse({ ...entry, ...change })), manifestHash(parse(entry)));
  }
});

Deno.test("parseManifest() throws only PmlError for any JSON", () => {
  const keys = [...Object.keys({ ...DENO, ...STDIO, ...HTTP, ...CLOUD }), "warnings", "routing"];
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom(...keys, "__proto__", "constructor"), fc.jsonValue()),
      fc.constantFrom<JsonObject>(DENO, STDIO as never, HTTP, CLOUD, {}),
      (odd, entry) => {
        try {
          const manifest = parse({ ...entry, ...odd });
          assert.match(manifestHash(manifest), /^sha256-/);
          assert.equal(manifest.name, "serena");
        } catch (error) {
          assert.ok(
            error instanceof PmlError && error.code === "REGISTRY_BAD_RESPONSE",
            `${error}`,
          );
        }
      },
    ),
    { numRuns: 500 },
  );
});
