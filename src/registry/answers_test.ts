import assert from "node:assert/strict";
import fc from "fast-check";
import { answer, type RegistryRequest, type RegistryResponse } from "./answers.ts";
import {
  compareVersions,
  type EntryVersion,
  type RegistryStore,
  versionsOf,
} from "./registry_store.ts";
import { storeOf } from "../../tests/kit/fake_registry.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function entry(fqdn: string, version: string, more: Partial<EntryVersion> = {}): EntryVersion {
  const tools = [{ name: "look", inputSchema: { type: "object" } }];
  const manifest = {
    fqdn,
    type: "deno",
    version,
    description: `D ${fqdn}`,
    routing: "local",
    tools,
  };
  return { fqdn, version, manifest, code: bytes(`// ${version}`), immutable: true, ...more };
}

function shelf(entries: readonly EntryVersion[], tags = {}): RegistryStore {
  return storeOf(versionsOf(entries, tags));
}

const WEATHER = shelf([
  entry("weather", "1.9.0"),
  entry("weather", "1.10.0"),
  entry("weather", "2.0.0-rc.1"),
  entry("draft", "0.1.0-a", { immutable: false }),
  entry("fs:read_json", "1.0.0"),
], { weather: { beta: "2.0.0-rc.1", gone: "9.9.9" }, draft: {} });

async function ask(target: string, more: Partial<RegistryRequest> = {}): Promise<RegistryResponse> {
  return await answer({ method: "GET", target, ...more }, WEATHER);
}

const text = ({ body }: RegistryResponse) => new TextDecoder().decode(body);

Deno.test("answer() returns the named, tagged or newest version, and marks immutable ones", async () => {
  const rows = [
    ["/mcp/weather", "1.10.0", "no-cache"],
    ["/weather", "1.10.0", "no-cache"],
    ["/mcp/weather@latest", "1.10.0", "no-cache"],
    ["/mcp/weather@beta", "2.0.0-rc.1", "no-cache"],
    ["/mcp/weather%401.9.0", "1.9.0", "public, max-age=31536000, immutable"],
    ["/mcp/draft", "0.1.0-a", "no-cache"],
    ["/mcp/draft@0.1.0-a", "0.1.0-a", "no-cache"],
    ["/mcp/fs:read_json", "1.0.0", "no-cache"],
    ["/mcp/fs%3Aread_json@1.0.0", "1.0.0", "public, max-age=31536000, immutable"],
  ] as const;
  for (const [target, version, caching] of rows) {
    const response = await ask(target);
    assert.equal(text(response), `// ${version}`, target);
    assert.equal(response.headers["cache-control"], caching, target);
    assert.equal(response.headers["x-pml-version"], version, target);
  }
  const gone = [
    "weather@gone",
    "weather@3",
    "fs",
    "constructor",
    "weather@constructor",
    "a/b",
    "%",
  ];
  for (const name of gone) {
    const response = await ask(`/mcp/${name}`);
    assert.equal(response.status, 404, name);
    assert.equal(text(response), `{"error":"not_found","message":"MCP '${name}' not in registry"}`);
  }
});

Deno.test("answer() returns the manifest to clients that prefer JSON to code", async () => {
  const rows: readonly (readonly [string | undefined, "json" | "typescript"])[] = [
    [undefined, "typescript"],
    ["*/*", "typescript"],
    ["application/typescript", "typescript"],
    ["application/typescript, application/json", "typescript"],
    ["application/json;q=0.5, application/typescript", "typescript"],
    ["text/html", "typescript"],
    ["application/json", "json"],
    ["APPLICATION/JSON", "json"],
    ["application/json, */*", "json"],
    ["application/json, application/typescript;q=0.9", "json"],
    ["*/*, application/typescript;q=0", "json"],
  ];
  for (const [accept, kind] of rows) {
    const { headers } = await ask("/mcp/weather", { accept });
    assert.equal(headers["content-type"], `application/${kind}`, accept);
    assert.equal(headers.vary, "accept");
  }
});

Deno.test("answer() returns a saved capability as a module, and its content to clients that name the type", async () => {
  const code = bytes('{"code":"return 1;","kind":"code"}');
  const manifest = { fqdn: "my:do", type: "capability", version: "1.0.0", integrity: "sha256-x" };
  const store = shelf([entry("my:do", "1.0.0", { manifest, code })]);
  const asked = (accept?: string) =>
    answer({ method: "GET", target: "/mcp/my:do@1.0.0", accept }, store);
  for (const accept of [undefined, "*/*", "text/html"]) {
    const response = await asked(accept);
    assert.match(
      text(response),
      /^\/\/ A capability[^]*\nexport\{run as "do",run as "default"\};\n$/,
    );
    assert.deepEqual([response.headers["content-type"], response.headers["cache-control"]], [
      "application/typescript",
      "no-cache",
    ]);
  }
  for (
    const accept of ["application/typescript", "application/json;q=0.5, Application/TypeScript"]
  ) {
    const response = await asked(accept);
    assert.deepEqual(response.body, code);
    assert.match(response.headers["cache-control"] ?? "", /immutable/);
  }
  assert.equal((await asked("application/json")).headers["content-type"], "application/json");
});

Deno.test("answer() sends no body if the client has it or sent HEAD", async () => {
  for (const target of ["/mcp/weather", "/mcp"]) {
    const whole = await ask(target);
    const { etag = "" } = whole.headers;
    assert.match(etag, /^"sha256-[0-9a-f]{64}"$/);
    for (const ifNoneMatch of [etag, `"x", ${etag}`, `W/${etag}`, "*"]) {
      const { status, headers, body } = await ask(target, { ifNoneMatch });
      assert.deepEqual([status, body.length, headers.etag], [304, 0, etag], ifNoneMatch);
      assert.equal("content-type" in headers || "content-length" in headers, false);
    }
    assert.equal((await ask(target, { ifNoneMatch: '"sha256-0"' })).status, 200);
    assert.deepEqual(await ask(target, { method: "HEAD" }), { ...whole, body: new Uint8Array() });
  }
});

Deno.test("answer() rejects other methods and MCP requests", async () => {
  for (const method of ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"]) {
    const { status, headers } = await ask("/mcp/weather", { method });
    assert.deepEqual([status, headers.allow], [405, "GET, HEAD"], method);
  }
  assert.equal((await ask("/mcp", { accept: "text/event-stream" })).status, 405);
  for (const limit of ["0", "-1", "x", "1e3", ""]) {
    assert.equal((await ask(`/mcp?limit=${limit}`)).status, 400, limit);
  }
});

Deno.test("answer() returns each server once in catalog pages of any size", async () => {
  const name = fc.stringMatching(/^[a-z][a-z0-9.-]{0,5}$/);
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(name), fc.integer({ min: 1, max: 9 }), async (names, limit) => {
      const all = shelf(names.map((each) => entry(each, "1.0.0")));
      const ids: string[] = [];
      for (let cursor = "";;) {
        const target = `/mcp?limit=${limit}&cursor=${encodeURIComponent(cursor)}`;
        const { items, next_cursor } = JSON.parse(
          text(await answer({ method: "GET", target }, all)),
        );
        assert.ok(items.length <= limit);
        ids.push(...items.map(({ fqdn }: { fqdn: string }) => fqdn));
        if (next_cursor === null) break;
        cursor = next_cursor;
      }
      assert.deepEqual(ids, names.toSorted());
    }),
    { numRuns: 50 },
  );
});

Deno.test("answer() responds to any target and headers", async () => {
  const unit = fc.constantFrom(..."%?&=/@:,;*q. \0\r\nü\ud800a1mcp".split(""));
  const odd = fc.string({ unit, maxLength: 40 });
  await fc.assert(fc.asyncProperty(odd, odd, odd, async (path, accept, ifNoneMatch) => {
    const response = await ask(`/mcp/${path}`, { accept, ifNoneMatch });
    assert.ok([200, 304, 400, 404].includes(response.status), String(response.status));
    for (const value of Object.values(response.headers)) assert.match(value, /^[ -~]*$/);
  }));
});

Deno.test("answer() searches the catalog by words and adds tools on request", async () => {
  const items = async (query: string) => JSON.parse(text(await ask(`/mcp/?${query}`))).items;
  const names = async (query: string) => (await items(query)).map(({ fqdn }: EntryVersion) => fqdn);
  assert.deepEqual(await names("q=READ"), ["fs:read_json"]);
  assert.deepEqual(await names("q=d%20look%20weather"), ["weather"]);
  assert.deepEqual(await names("q=nothing"), []);
  assert.deepEqual(await items("q=weather"), [
    {
      fqdn: "weather",
      type: "deno",
      version: "1.10.0",
      description: "D weather",
      routing: "local",
    },
  ]);
  assert.equal((await items("q=weather&include=tools"))[0].tools[0].name, "look");
});

Deno.test("compareVersions() follows semantic versioning", () => {
  const inOrder = [
    ...["0.9.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2"],
    ...["1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2024-a", "2024"],
  ];
  assert.deepEqual(inOrder.toReversed().sort(compareVersions), inOrder);
  assert.equal(compareVersions("1.0.0+a", "1.0.0+b"), 0);
});
