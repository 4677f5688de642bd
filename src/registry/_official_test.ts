import assert from "node:assert/strict";
import { officialAnswers, type OfficialEntry } from "../../tests/kit/fake_official.ts";
import { FakeRegistry } from "../../tests/kit/fake_registry.ts";
import type { Fetch } from "../core/fetch.ts";
import { Official } from "./_official.ts";
import { parseFqdn } from "./fqdn.ts";
import type { Lookup, RegistryReader } from "./source.ts";

function published(
  name: string,
  version: string,
  more: Partial<OfficialEntry> = {},
): OfficialEntry {
  const transport = { type: "stdio" };
  const packages = [{ registryType: "npm", identifier: "weather-mcp", version, transport }];
  return { server: { name, version, description: `D ${name}`, packages }, ...more };
}

const ALL: readonly OfficialEntry[] = [
  published("io.github.user/weather", "1.0.0"),
  published("io.github.user/weather", "1.1.0"),
  published("io.github.Some-Body/Maps", "2.0.0"),
  published("com.example/my.server", "3.0.0"),
  published("com.example/old", "1.0.0", { status: "deprecated", statusMessage: "moved" }),
  published("com.example/gone", "1.0.0", { status: "deleted" }),
  {
    server: {
      ...{ name: "com.example/box", version: "1.0.0", description: "Box" },
      packages: [{ registryType: "oci", identifier: "docker.io/box:1" }],
    },
  },
];

const plainFetch: Fetch = async (url, { named: _, ...init }) =>
  await fetch(url, { ...init, redirect: "manual" });

async function open(all = ALL) {
  const registry = await FakeRegistry.open([], officialAnswers(all));
  const source: RegistryReader = new Official(`mcp+${registry.origin}`, {
    fetch: plainFetch,
    retryMs: 1,
  });
  const signal = new AbortController().signal;
  const look = (name: string) => source.manifest(parseFqdn(name), signal);
  return {
    ...{ registry, source, signal, look },
    [Symbol.asyncDispose]: () => registry[Symbol.asyncDispose](),
  };
}

function versionOf(lookup: Lookup): unknown {
  return lookup.kind === "found" ? `${lookup.json.fqdn}@${lookup.json.version}` : lookup.kind;
}

Deno.test("Official finds a server by its name in PML with at most three requests", async () => {
  await using official = await open();
  const { registry, look } = official;
  const rows = [
    ["io.github.user.weather", "io.github.user.weather@1.1.0", 1],
    ["io.github.user.weather@latest", "io.github.user.weather@1.1.0", 1],
    ["io.github.user.weather@1.0.0", "io.github.user.weather@1.0.0", 1],
    ["io.github.user.weather@9.0.0", "missing", 2],
    ["io.github.some-body.maps", "io.github.some-body.maps@2.0.0", 2],
    // The name is cached from here on.
    ["io.github.some-body.maps@2.0.0", "io.github.some-body.maps@2.0.0", 1],
    ["com.example.my.server", "com.example.my.server@3.0.0", 3],
    ["com.example.gone", "missing", 1],
    ["com.example.none", "missing", 3],
    ["serena", "missing", 0],
    ["fs.x:read", "missing", 0],
  ] as const;
  for (const [name, wanted, requests] of rows) {
    registry.asked.length = 0;
    assert.equal(versionOf(await look(name)), wanted, name);
    assert.equal(registry.asked.length, requests, `${name}: ${registry.paths}`);
  }
  registry.asked.length = 0;
  await look("io.github.user.weather");
  assert.deepEqual(registry.paths, ["/v0.1/servers/io.github.user%2Fweather/versions/latest"]);
  assert.equal(registry.asked[0]?.headers.accept, "application/json");
});

Deno.test("Official returns the catalog page by page, without servers that PML cannot run", async () => {
  const many = Array.from({ length: 120 }, (_, at) => published(`com.many/s${at}`, "1.0.0"));
  await using official = await open([...ALL, ...many]);
  const { registry, source, signal, look } = official;
  const first = await source.catalog(signal);
  const second = await source.catalog(signal, first.next);
  const names = [...first.items, ...second.items].map((item) => (item as { fqdn: string }).fqdn);
  assert.deepEqual(names.slice(0, 4), [
    ...["io.github.user.weather", "io.github.some-body.maps", "com.example.my.server"],
    "com.example.old",
  ]);
  assert.deepEqual([names.length, second.next], [124, undefined]);
  assert.deepEqual(registry.paths, [
    "/v0.1/servers?version=latest&limit=100",
    "/v0.1/servers?version=latest&limit=100&cursor=100",
  ]);
  // The catalog contained the exact name.
  assert.equal(versionOf(await look("io.github.some-body.maps")), "io.github.some-body.maps@2.0.0");
  assert.equal(registry.asked.length, 3);
});

Deno.test("Official does not confuse servers whose names are equal in PML", async () => {
  const [mine, other] = ["com.example.team/tool", "com.example/team.tool"] as const;
  for (const names of [[mine, other], [other, mine]]) {
    await using official = await open(names.map((name) => published(name, "1.0.0")));
    const { source, signal, look } = official;
    await source.catalog(signal);
    const found = await look("com.example.team.tool");
    assert.equal(found.kind === "found" && found.json.description, `D ${mine}`);
  }
});

Deno.test("Official reports why a server cannot be run and why a response is unusable", async () => {
  await using official = await open();
  const { registry, source, signal, look } = official;
  await assert.rejects(look("com.example.box"), {
    code: "REGISTRY_BAD_RESPONSE",
    message: /"com.example\/box" .*"oci"/,
  });
  await assert.rejects(
    source.code({} as never, signal),
    { code: "REGISTRY_BAD_RESPONSE", message: /it has no modules/ },
  );
  for (const body of ["{", "[]", '{"servers": {}}']) {
    registry.fault("/v0.1/servers", { body });
    await assert.rejects(source.catalog(signal), { code: "REGISTRY_BAD_RESPONSE" }, body);
  }
  registry.fault("*", { status: 503 });
  await assert.rejects(look("io.github.user.weather"), { code: "REGISTRY_OFFLINE" });
  await registry.stop();
  await assert.rejects(look("io.github.user.weather"), { code: "REGISTRY_OFFLINE" });
});
