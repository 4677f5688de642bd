/**
 * A spawned hub: the contract of registries, the API of the official registry, and how it starts
 * and ends.
 *
 * @module
 */

import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { connect } from "node:net";
import { once } from "node:events";
import type { Fetch } from "../src/core/fetch.ts";
import { Official } from "../src/registry/_official.ts";
import { parseFqdn } from "../src/registry/fqdn.ts";
import { verifyManifest } from "../src/registry/signature.ts";
import { assertGolden } from "./kit/golden.ts";
import { HUB } from "./kit/pml_command.ts";
import { ProcWatch } from "./kit/procwatch.ts";
import {
  assertContract,
  EVIL,
  FILES,
  GREETER,
  rawRequest,
  serveHub,
} from "./kit/registry_contract.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";
import { makeWorkspace, type Workspace } from "./kit/workspace.ts";

const never = new AbortController().signal;

async function hubWorkspace(files: Readonly<Record<string, string>>): Promise<Workspace> {
  const all = Object.entries(files).map(([name, text]) => [`served/${name}`, text]);
  return await makeWorkspace({ files: Object.fromEntries(all) });
}

async function hub(ws: Workspace, ...args: readonly string[]) {
  return await runPml(ws, args, { command: HUB });
}

Deno.test("a hub answers an imported folder byte for byte as pml registry serve does", async () => {
  const mark = `/tmp/${crypto.randomUUID()}`;
  await using ws = await hubWorkspace({ ...FILES, "evil.ts": EVIL.replace("MARK", mark) });
  const watch = new ProcWatch(ws);
  const imported = await hub(ws, "import", "served", "--json");
  const counts = { added: 7, same: 0, refused: 0, left_out: 1 };
  assert.deepEqual(JSON.parse(imported.stdout), counts, imported.stderr);
  assert.match(imported.stderr, /warning: Cannot serve "broken\.ts": Expression expected/);
  assert.equal(imported.code, 1);
  await assert.rejects(Deno.stat(mark), Deno.errors.NotFound);
  await using serving = await serveHub(ws);
  const { port } = serving;
  assert.deepEqual(JSON.parse(serving.said), { url: `http://127.0.0.1:${port}/mcp` });
  await assertContract(port);
  assert.match(await rawRequest(port, "GET /mcp/routing"), /\r\n\r\n\{"cloud":\["tavily"\]\}$/);
  assert.match(await rawRequest(port, "GET /health"), /^HTTP\/1.1 200 .*\{"status":"ok"\}$/s);
  assert.match(await rawRequest(port, "GET /ready"), /\{"status":"ready","names":6\}$/);
  const tools = await rawRequest(port, "GET /mcp?include=tools&q=GREET%20somebody%20");
  assert.match(tools, /"next_cursor":null/);
  assert.match(
    await rawRequest(port, "GET /mcp?q=greet&include=tools"),
    /"tools":\[\{"description"/,
  );
  for (const path of ["/mcp", "/v0.1/servers"]) {
    assert.match(await rawRequest(port, `GET ${path}?q=${"a".repeat(501)}`), /^HTTP\/1.1 400 /);
  }
  for (const path of ["/mcp/../../etc/passwd", "/mcp/%2e%2e%2fhub.db", "/mcp/x%00", "/mcp/%ff"]) {
    assert.match(await rawRequest(port, `GET ${path}`), /^HTTP\/1.1 404 /, path);
  }
  const { code, stderr } = await serving.end();
  assert.deepEqual([code, stderr], [143, ""]);
  await watch.assertNothingLeft();
});

Deno.test("a hub accepts a version once, while it serves, and refuses other content under it", async () => {
  await using ws = await hubWorkspace({ "greeter.ts": GREETER });
  await using serving = await serveHub(ws);
  assert.equal((await hub(ws, "import", "served")).code, 0);
  assert.match(await rawRequest(serving.port, "GET /mcp/greeter@1.2.0"), /immutable[^]*"hello "/);
  const again = await hub(ws, "import", "served");
  assert.equal(again.stdout, "Added 0, known already 1, refused 0, left out 0\n");
  await Deno.writeTextFile(ws.file("served/greeter.ts"), GREETER.replace("hello", "hi"));
  const other = await hub(ws, "import", "served");
  assert.equal(other.code, 1);
  assertGolden("hub/add with another content", other.stderr);
  assert.match(other.stderr, /"greeter@1\.2\.0"/);
  assert.match(await rawRequest(serving.port, "GET /mcp/greeter@1.2.0"), /"hello "/);
  const newer = GREETER.replace("hello", "hi").replace("1.2.0", "1.3.0");
  await Deno.writeTextFile(ws.file("served/greeter.ts"), newer);
  await Deno.writeTextFile(ws.file("served/tags.json"), `{"greeter": {"old": "1.2.0"}}`);
  assert.equal((await hub(ws, "import", "served")).code, 0);
  assert.match(await rawRequest(serving.port, "GET /mcp/greeter"), /"hi "/);
  assert.match(await rawRequest(serving.port, "GET /mcp/greeter@old"), /no-cache[^]*"hello "/);

  assert.equal((await hub(ws, "backup", "copy")).code, 0);
  assert.equal((await hub(ws, "restore", "copy", "--data", "again")).code, 0);
  await using second = await serveHub(ws, ["--data", "again"]);
  assert.match(await rawRequest(second.port, "GET /mcp/greeter@old"), /"hello "/);
  const over = await hub(ws, "restore", "copy", "--data", "again");
  assert.equal(over.code, 2);
  assert.match(
    over.stderr,
    /^error: USAGE: Cannot restore to "again": it already contains/,
  );
});

Deno.test("a hub signs entries for the address that clients configure, and answers under its name", async () => {
  await using ws = await hubWorkspace({ "docs.json": FILES["docs.json"] });
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  const pem = String(privateKey.export({ type: "pkcs8", format: "pem" }));
  await Deno.writeTextFile(ws.file("key.pem"), pem);
  await hub(ws, "import", "served");
  const url = "https://hub.example.com/mcp";
  await using serving = await serveHub(ws, ["--key", "key.pem", "--url", `${url}/`]);
  const pinned = publicKey.export({ type: "spki", format: "der" }).toString("base64");
  assert.equal(JSON.parse(serving.said).public_key, pinned);
  const answer = await rawRequest(serving.port, "GET /mcp/docs", "host: hub.example.com\r\n");
  const entry = JSON.parse(answer.split("\r\n\r\n")[1] ?? "");
  assert.ok(verifyManifest(entry, { registry: url, publicKey: pinned }) > 0);
  const evil = await rawRequest(serving.port, "GET /mcp/docs", "host: evil.example\r\n");
  assert.match(evil, /^HTTP\/1.1 403 /);
  await Deno.writeTextFile(ws.file("key.pem"), "secret-text");
  const wrong = await hub(ws, "serve", "--key", "key.pem");
  assert.equal(wrong.code, 2);
  assert.match(wrong.stderr, /not an Ed25519 key/);
  assert.doesNotMatch(wrong.stderr, /secret-text/);
});

const plainFetch: Fetch = async (url, { named: _, ...init }) =>
  await fetch(url, { ...init, redirect: "manual" });

Deno.test("a hub has the API of an official registry, and returns entries as they were imported", async () => {
  const maps = {
    ...{ type: "stdio", version: "2.0.1", description: "Maps" },
    install: { command: "npx", args: ["-y", "@acme/maps@2.0.1", "--fast"], env: { MODE: "a" } },
    env_required: ["MAPS_KEY"],
  };
  const remote = {
    ...{ type: "http", version: "1.0.0", url: "https://docs.example.com/mcp" },
    headers: { authorization: "Bearer ${DOCS_KEY}" },
    env_required: ["DOCS_KEY"],
  };
  await using ws = await hubWorkspace({
    ...FILES,
    "com.acme.maps@2.0.1.json": JSON.stringify(maps),
    "com.acme.maps@2.0.0.json": JSON.stringify({ ...maps, version: "2.0.0" })
      .replace("maps@2.0.1", "maps@2.0.0"),
    "docs.json": JSON.stringify(remote),
  });
  await hub(ws, "import", "served");
  await using serving = await serveHub(ws);
  const origin = `http://127.0.0.1:${serving.port}`;
  const source = new Official(`mcp+${origin}`, { fetch: plainFetch });
  const { items, next } = await source.catalog(never);
  assert.equal(next, undefined);
  const names = items.map((item) => (item as { fqdn: string }).fqdn);
  assert.deepEqual(names, ["com.acme.maps", "pml.docs", "pml.serena"]);
  const found = await source.manifest(parseFqdn("com.acme.maps"), never);
  assert.ok(found.kind === "found");
  assert.deepEqual(found.json.install, {
    ...{ command: "npx", args: ["-y", "@acme/maps@2.0.1", "--fast"] },
    env: { MAPS_KEY: "${MAPS_KEY}", MODE: "a" },
    env_required: ["MAPS_KEY"],
  });
  const { etag } = found;
  const again = await source.manifest(parseFqdn("com.acme.maps"), never, etag);
  assert.equal(again.kind, "unchanged");
  const docs = await source.manifest(parseFqdn("pml.docs"), never);
  assert.deepEqual(docs.kind === "found" && docs.json.headers, remote.headers);
  const old = await source.manifest(parseFqdn("com.acme.maps@2.0.0"), never);
  assert.equal(old.kind === "found" && old.json.version, "2.0.0");
  for (const name of ["com.acme.maps@9.9.9", "com.acme.none", "pml.greeter", "pml.tavily"]) {
    const none = await source.manifest(parseFqdn(name), never);
    assert.equal(none.kind, "missing", name);
  }
  const page = await (await fetch(`${origin}/v0.1/servers?limit=1`)).json();
  assert.deepEqual([page.servers.length, page.metadata.nextCursor], [2, "com.acme.maps"]);
  const versions = await (await fetch(`${origin}/v0.1/servers/com.acme%2Fmaps/versions`)).json();
  const OFFICIAL = "io.modelcontextprotocol.registry/official";
  const latest = versions.servers.map((
    one: Record<string, Record<string, Record<string, unknown>>>,
  ) => [one.server?.version, one._meta?.[OFFICIAL]?.isLatest]);
  assert.deepEqual(latest, [["2.0.1", true], ["2.0.0", false]]);
  assert.match(await rawRequest(serving.port, "GET /v0.1/servers?limit=0"), /^HTTP\/1.1 400 /);
});

Deno.test("a hub ends within seconds after a signal, also where a client sent half a request", async () => {
  await using ws = await hubWorkspace({});
  await using serving = await serveHub(ws);
  const silent = connect(serving.port, "127.0.0.1");
  // A reset is one way to be closed.
  silent.on("error", () => {});
  await once(silent, "connect");
  silent.write("GET /mcp HTTP/1.1\r\n");
  const begun = Date.now();
  const { code } = await serving.end();
  assert.equal(code, 143);
  assert.ok(Date.now() - begun < 10_000);
  await until(() => silent.destroyed || silent.readableEnded || silent.closed);
  silent.destroy();
});

Deno.test("a hub listens at a public address only behind a proxy with TLS", async () => {
  await using ws = await hubWorkspace({});
  for (const host of ["192.0.2.1", "0.0.0.0", "::", "hub.example"]) {
    const { code, stderr } = await hub(ws, "serve", "--host", host, "--port", "0");
    assert.equal(code, 2, stderr);
    assert.match(stderr, /keys of publishers\n.*--behind-proxy/);
  }
  // The address is accepted, and listening fails.
  const { stderr } = await hub(ws, "serve", "--host", "192.0.2.1", "--behind-proxy");
  assert.match(stderr, /at "192\.0\.2\.1:3005": /);
});
