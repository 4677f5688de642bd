import assert from "node:assert/strict";
import fc from "fast-check";
import { exactNumber } from "../core/exact_number.ts";
import type { JsonObject } from "../core/json.ts";
import { offerOf, pmlName } from "./_server_json.ts";
import type { HttpManifest } from "../servers/http/kind.ts";
import type { StdioManifest } from "../servers/stdio/kind.ts";
import { parseFqdn } from "./fqdn.ts";
import { parseManifest } from "./manifest.ts";

const NPM = {
  registryType: "npm",
  registryBaseUrl: "https://registry.npmjs.example",
  identifier: "@example/server-brave-search",
  version: "1.0.2",
  transport: { type: "stdio" },
};
const PYPI = {
  registryType: "pypi",
  identifier: "weather-mcp-server",
  version: "0.5.0",
  runtimeHint: "uvx",
  transport: { type: "stdio" },
};
const REMOTE = { type: "streamable-http", url: "https://mcp.example.com/http" };

function server(said: Record<string, unknown>, official: JsonObject = { status: "active" }) {
  return {
    server: { name: "io.github.User/weather", description: "Weather", version: "1.5.0", ...said },
    _meta: { "io.modelcontextprotocol.registry/official": official },
  };
}

const asked = parseFqdn("io.github.user.weather");
const url = "mcp+https://registry.example.com";

/** Returns the manifest of an entry. */
function manifestOf(response: unknown) {
  const offer = offerOf(response);
  assert.equal(offer.kind, "entry", JSON.stringify(offer));
  return parseManifest(offer.kind === "entry" && offer.json, { url, asked }) as
    & StdioManifest
    & HttpManifest;
}

function installOf(more: Record<string, unknown>, base: object = NPM) {
  const manifest = manifestOf(server({ packages: [{ ...base, ...more }] }));
  assert.equal(manifest.kind, "stdio");
  return manifest;
}

function refusalOf(said: Record<string, unknown>): string {
  const offer = offerOf(server(said));
  return offer.kind === "refused" ? offer.why : `not refused: ${JSON.stringify(offer)}`;
}

Deno.test("offerOf() converts packages and remotes to entries of PML", () => {
  const base = {
    ...{ fqdn: "io.github.user.weather", name: "io.github.user.weather", version: "1.5.0" },
    ...{ description: "Weather", tools: [], envRequired: [], warnings: [], routing: "local" },
  };
  const npm = { kind: "stdio", command: "npx", args: ["-y", "@example/server-brave-search@1.0.2"] };
  assert.deepEqual(manifestOf(server({ packages: [NPM] })), { ...base, ...npm, env: {} });
  const pypi = { kind: "stdio", command: "uvx", args: ["weather-mcp-server@0.5.0"], env: {} };
  assert.deepEqual(manifestOf(server({ packages: [PYPI] })), { ...base, ...pypi });
  const http = { kind: "http", url: "https://mcp.example.com/http", headers: {} };
  const sse = { type: "sse", url: "https://mcp.example.com/sse" };
  assert.deepEqual(manifestOf(server({ remotes: [sse, REMOTE] })), { ...base, ...http });
  for (const version of ["2024.1", "1", "1.0rc1", "1!2.0.post1", "1.0.0-beta"]) {
    assert.deepEqual(installOf({ version }, PYPI).args, [`weather-mcp-server@${version}`]);
  }
  const oci = { registryType: "oci", identifier: "docker.io/x/y:1", transport: { type: "stdio" } };
  const all = server({ remotes: [REMOTE], packages: [oci, PYPI, NPM] });
  assert.deepEqual(manifestOf(all), { ...base, ...pypi });
  assert.deepEqual(manifestOf(server({ remotes: [REMOTE], packages: [oci] })), {
    ...base,
    ...http,
  });
});

Deno.test("offerOf() converts variables to references with a default or required variables", () => {
  const { env, envRequired } = installOf({
    environmentVariables: [
      { name: "API_KEY", isRequired: true, isSecret: true },
      { name: "UNITS", default: "celsius" },
      { name: "FIXED", value: "a;b $(c)" },
      { name: "DEBUG", isRequired: false, value: null, default: null },
      {
        name: "DSN",
        value: "pg://{user}:{password}@{host}/{other}",
        variables: {
          user: { default: "me" },
          password: { isRequired: true, isSecret: true },
          host: { value: "db" },
        },
      },
    ],
  });
  assert.deepEqual(env, {
    API_KEY: "${API_KEY}",
    UNITS: "${UNITS:-celsius}",
    FIXED: "a;b $(c)",
    DEBUG: "${DEBUG:-}",
    DSN: "pg://${USER:-me}:${PASSWORD}@db/{other}",
  });
  assert.deepEqual(envRequired, ["API_KEY", "PASSWORD"]);
  const { headers, envRequired: needed, url } = manifestOf(server({
    remotes: [{
      type: "streamable-http",
      url: "https://{region}.example.com/mcp",
      variables: { region: { default: "eu", choices: ["eu", "us"] } },
      headers: [
        { name: "X-API-Key", isRequired: true, isSecret: true },
        {
          name: "Authorization",
          value: "Bearer {api-token}",
          variables: { "api-token": { isRequired: true } },
        },
      ],
    }],
  })) as { headers: unknown; envRequired: unknown; url: unknown };
  assert.deepEqual(
    { headers, needed, url },
    {
      headers: { "X-API-Key": "${X_API_KEY}", "Authorization": "Bearer ${API_TOKEN}" },
      needed: ["API_TOKEN", "X_API_KEY"],
      url: "https://eu.example.com/mcp",
    },
  );
});

Deno.test("offerOf() keeps the order of arguments and never joins them", () => {
  const { args, envRequired } = installOf({
    runtimeArguments: [{ type: "positional", value: "-y" }],
    packageArguments: [
      { type: "positional", value: 'start; rm -rf ~ && $(x) `y` "z"' },
      { type: "named", name: "--mode", default: "local", choices: ["local", "proxy"] },
      { type: "named", name: "-e", value: "DB={db}", variables: { db: { isRequired: true } } },
      { type: "named", name: "--port", format: "number" },
      { type: "named", name: "--stdio", description: "Speak on pipes" },
      { type: "named", name: "--root", valueHint: "root_dir", isRequired: true },
      { type: "positional", valueHint: "target_dir", default: "/data", isRepeated: true },
      { type: "positional", valueHint: "rest" },
    ],
  });
  assert.deepEqual(args.slice(2), [
    ...['start; rm -rf ~ && $(x) `y` "z"', "--mode=${MODE:-local}", "-e", "DB=${DB}", "--stdio"],
    ...["--root=${ROOT_DIR}", "${TARGET_DIR:-/data}"],
  ]);
  assert.deepEqual(envRequired, ["DB", "ROOT_DIR"]);
});

Deno.test("offerOf() takes numbers and booleans as their texts", () => {
  const { args } = installOf({
    packageArguments: [
      { type: "named", name: "--port", value: 8080 },
      { type: "named", name: "--ratio", value: exactNumber("1.0") },
      { type: "positional", valueHint: "verbose", default: true },
    ],
  });
  assert.deepEqual(args.slice(2), ["--port=8080", "--ratio=1.0", "${VERBOSE:-true}"]);
});

Deno.test("offerOf() reports why a server cannot be run", () => {
  const npm = (more: object) => ({ packages: [{ ...NPM, ...more }] });
  const given = (...packageArguments: unknown[]) => npm({ packageArguments });
  const rows: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{}, /no package .*no remote/],
    ...["oci", "nuget", "mcpb", "cargo", "constructor"].map((registryType) =>
      [npm({ registryType }), new RegExp(`no packages of type "${registryType}"`)] as const
    ),
    [npm({ transport: REMOTE }), /uses "streamable-http", not stdio/],
    ...["latest", "^1.0.0", "1.x", "1.0", "", ">=1.0.0 <2"].map((version) =>
      [npm({ version }), /no exact version/] as const
    ),
    ...["1.x", "1.*", "latest", "~=1.0", "1.0,<2"].map((version) =>
      [{ packages: [{ ...PYPI, version }] }, /no exact version/] as const
    ),
    [npm({ registryBaseUrl: "https://npm.evil.example" }), /which PML does not use/],
    [npm({ runtimeHint: "docker" }), /is run by "docker"/],
    [
      npm({ runtimeArguments: [{ type: "named", name: "--registry", value: "x" }] }),
      /"--registry"/,
    ],
    ...["--package=evil", "-p", "a b", "git+https://x.example/y", "../x", ""].map((identifier) =>
      [npm({ identifier }), /an invalid package name/] as const
    ),
    [given({ type: "positional", value: "${AWS_SECRET}" }), /would replace a reference/],
    [
      given({ type: "positional", value: "${v}", variables: { v: {} } }),
      /would replace a reference/,
    ],
    [
      given({ type: "positional", value: "{w}{HOME}", variables: { w: { value: "$" } } }),
      /would replace a reference/,
    ],
    [given({ type: "positional", value: "a\nb" }), /control character/],
    [given({ type: "positional", value: {} }), /not a text/],
    [given({ valueHint: "first" }, { value: "second" }), /without a value precedes/],
    [{ remotes: [{ type: "sse", url: "https://x.example/sse" }] }, /no remote of type "sse"/],
    [{ remotes: [{ ...REMOTE, url: "http://x.example/mcp" }] }, /not https/],
    [
      { remotes: [{ ...REMOTE, url: "https://{t}.example/mcp" }] },
      /"t", which PML does not replace/,
    ],
  ];
  for (const [said, why] of rows) assert.match(refusalOf(said), why, JSON.stringify(said));
  const both = refusalOf({ ...npm({ registryType: "oci" }), remotes: [{ type: "sse", url: "x" }] });
  assert.match(both, /"oci"; .*"sse"/);
});

Deno.test("offerOf() applies the status of a version", () => {
  const packages = [NPM];
  assert.deepEqual(offerOf(server({ packages }, { status: "deleted" })), { kind: "deleted" });
  assert.deepEqual(offerOf({ server: { packages, status: "deleted" } }), { kind: "deleted" });
  const old = { status: "deprecated", statusMessage: "use weather2" };
  assert.deepEqual(manifestOf(server({ packages }, old)).warnings, ["deprecated: use weather2"]);
});

Deno.test("offerOf() never replaces undeclared variables, and never joins or splits arguments", () => {
  const text = fc.string({ unit: fc.constantFrom(..."${}ab;&|`'\"\\ \n-=:<>*~\u0000".split("")) });
  const input = fc.record({
    type: fc.constantFrom("positional", "named"),
    name: fc.constantFrom("--a", "-b"),
    value: text,
    variables: fc.dictionary(
      fc.constantFrom("a", "b", "ab"),
      fc.record({ default: text, value: text, isRequired: fc.boolean() }, { requiredKeys: [] }),
    ),
  }, { requiredKeys: ["type", "name", "value"] });
  fc.assert(
    fc.property(fc.array(input, { maxLength: 4 }), (packageArguments) => {
      const offer = offerOf(server({ packages: [{ ...NPM, packageArguments }] }));
      if (offer.kind !== "entry") return;
      const { args } = offer.json.install as unknown as { args: readonly string[] };
      const wanted = packageArguments.flatMap(({ type, name, value }) =>
        type === "positional" ? [value] : name === "-b" ? [name, value] : [`${name}=${value}`]
      );
      assert.equal(args.length, 2 + wanted.length);
      for (const [at, source] of wanted.entries()) {
        const filled = args[at + 2] ?? "";
        const references = [...filled.matchAll(/\$\{(\w+)(?::-[^}]*)?\}/g)].map(([, name]) => name);
        for (const name of references) assert.ok(["A", "B", "AB"].includes(name ?? ""), filled);
        assert.ok(!filled.replace(/\$\{\w+(?::-[^}]*)?\}/g, "").includes("${"), filled);
        if (!source.includes("{")) assert.equal(filled, source);
      }
    }),
    { numRuns: 500 },
  );
});

Deno.test("pmlName() returns valid server names", () => {
  assert.equal(
    pmlName("io.github.GongRzhe/Office-PowerPoint"),
    "io.github.gongrzhe.office-powerpoint",
  );
});
