/**
 * A hub whose store is on a PostgreSQL server: its commands, its reports, and backups.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { integrityOf } from "../src/core/hash.ts";
import { moduleOffer, type Offer, put, spawnHub, spawnHubWith } from "./kit/hub.ts";
import { HUB } from "./kit/pml_command.ts";
import { startPostgres } from "./kit/postgres.ts";
import { runPml } from "./kit/run.ts";
import { until } from "./kit/wait.ts";

/** A saved capability that calls two tools. */
const CALLING = ((): Offer => {
  const hash = `sha256-${"0".repeat(64)}`;
  const code = `{"code":"await mcp.a.x(); await mcp.b.y();","kind":"code",` +
    `"parameters":{"type":"object"},"tools_used":{"a:x":"${hash}","b:y":"${hash}"},"version":1}`;
  const manifest = {
    ...{ fqdn: "acme:do", type: "capability", version: "1.0.0", tools: [{ name: "do" }] },
    ...{ tools_used: ["a:x", "b:y"], env_required: [], warnings: [], routing: "local" },
    integrity: integrityOf(new TextEncoder().encode(code)),
  };
  return { manifest, code };
})();
const PORT = /"metrics":"([^"]+)"/;

Deno.test("a hub on PostgreSQL stores folders and publishers, and PostgreSQL's own tools can copy it", async () => {
  await using server = await startPostgres();
  const url = await server.database();
  await using hub = await spawnHubWith({ DATABASE_URL: url });
  await Deno.mkdir(hub.ws.file("in"));
  const docs = { type: "http", version: "1.0.0", url: "https://docs.example.com/mcp" };
  await Deno.writeTextFile(hub.ws.file("in/docs.json"), JSON.stringify(docs));
  const imported = await hub.run("import", "in");
  assert.deepEqual([imported.code, imported.stdout], [
    0,
    "Added 1, known already 0, refused 0, left out 0\n",
  ]);
  const { key } = await hub.key("acme");
  assert.equal((await put(hub.url, key, moduleOffer("acme", "1.0.0"))).status, 201);
  assert.match(await (await fetch(`${hub.url}/acme@1.0.0`)).text(), /greet/);
  assert.equal((await fetch(`${hub.url}/docs`)).headers.get("x-pml-version"), "1.0.0");
  // The folder contains no store, and no file contains the password.
  assert.ok(![...Deno.readDirSync(hub.ws.path)].some(({ name }) => name === "hub-data"));
  const copy = join(server.folder, "copy");
  await server.tool("pg_dump", "--format=custom", `--file=${copy}`, `--dbname=${url}`);
  const fresh = await server.database();
  const restored = ["--exit-on-error", "--no-owner", `--dbname=${fresh}`, copy];
  await server.tool("pg_restore", ...restored);
  await using back = await spawnHubWith({ DATABASE_URL: fresh });
  assert.match(await (await fetch(`${back.url}/acme@1.0.0`)).text(), /greet/);
  assert.equal((await put(back.url, key, moduleOffer("acme", "1.1.0"))).status, 201);
  const found = await (await fetch(`${back.url}?q=greets`)).json();
  assert.deepEqual(found.items.map((one: { fqdn: string }) => one.fqdn), ["acme"]);
  const { stderr } = await back.serving.end();
  assert.doesNotMatch(stderr + back.serving.said, /geheim/);
});

Deno.test("a backup of one store is restored to the other completely, and overwrites nothing", async () => {
  await using server = await startPostgres();
  await using hub = await spawnHub();
  const acme = await hub.key("acme");
  const gone = await hub.key("gone");
  await hub.key("acme", "--client");
  const published = [moduleOffer("acme", "1.0.0"), moduleOffer("acme", "1.1.0"), CALLING]
    .concat(Array.from({ length: 40 }, (_, at) => moduleOffer(`acme.n${at}`, "1.0.0", `${at}`)));
  for (const offer of published) {
    const { status, body } = await put(hub.url, acme.key, offer);
    assert.equal(status, 201, JSON.stringify(body));
  }
  await hub.run("key", "revoke", gone.id);
  await hub.run("yank", "acme@1.1.0", "--reason", "old");
  await using moderated = await hub.again("--moderated");
  const waiting = `http://127.0.0.1:${moderated.port}/mcp`;
  assert.equal((await put(waiting, acme.key, moduleOffer("acme", "2.0.0"))).status, 201);
  const first = await hub.run("backup", "first");
  assert.equal(first.code, 0, first.stderr);
  const url = await server.database();
  const onServer = (...words: readonly string[]) =>
    runPml(hub.ws, words, { command: HUB, env: { DATABASE_URL: url } });
  const restored = await onServer("restore", "first");
  assert.equal(restored.code, 0, restored.stderr);
  const again = await onServer("restore", "first");
  assert.match(
    again.stderr,
    /Cannot restore to "the database of DATABASE_URL": it already contains/,
  );
  assert.match((await onServer("backup", "first")).stderr, /already exists/);
  const second = await onServer("backup", "second");
  assert.equal(second.code, 0, second.stderr);
  assert.deepEqual(contentOf(hub.ws.file("second")), contentOf(hub.ws.file("first")));
  const third = await hub.run("restore", "second", "--data", "third");
  assert.equal(third.code, 0, third.stderr);
  assert.deepEqual(contentOf(hub.ws.file("third/hub.db")), contentOf(hub.ws.file("first")));
  // The hub on the server answers like the one of the file, and accepts changes.
  await using other = await spawnHubWith({ DATABASE_URL: url });
  for (const path of ["", "/acme", "/acme@1.1.0", "?q=greets&include=tools", "/acme:do"]) {
    const [was, is] = await Promise.all([hub.url, other.url].map(async (base) => {
      const answer = await fetch(`${base}${path}`);
      return [answer.status, answer.headers.get("etag"), await answer.text()];
    }));
    assert.deepEqual(is, was, path);
  }
  assert.equal((await put(other.url, acme.key, moduleOffer("acme", "1.2.0"))).status, 201);
  assert.equal((await put(other.url, gone.key, moduleOffer("gone", "1.0.0"))).status, 401);
  assert.match((await onServer("waiting")).stdout, /acme@2\.0\.0/);
  for (const file of ["missing", "notes"]) {
    await Deno.writeTextFile(hub.ws.file("notes"), "no backup");
    assert.match((await onServer("restore", file)).stderr, /Cannot restore "/);
  }
});

/** Returns all rows of the file of a store, except for the times of its migrations. */
function contentOf(path: string): Readonly<Record<string, unknown>> {
  using db = new DatabaseSync(path, { readOnly: true });
  const names = ["blobs", "servers", "capabilities", "tags", "newest", "keys", "key_records"];
  return Object.fromEntries([...names, "namespaces", "waiting", "follows"].map((name) => {
    const rows = db.prepare(`SELECT * FROM ${name}`).all().map(({ id, ...row }) =>
      JSON.stringify(name === "newest" ? row : { id, ...row })
    );
    return [name, rows.sort()];
  }));
}

Deno.test("a hub reports that it is not ready while its database is silent, and is ready again afterwards", async () => {
  await using server = await startPostgres();
  await using hub = await spawnHubWith({ DATABASE_URL: await server.database() });
  const ready = async () => {
    const response = await fetch(new URL("/ready", hub.url));
    return `${response.status} ${(await response.json()).error}`;
  };
  assert.equal(await ready(), "200 undefined");
  await server.signal("SIGSTOP");
  assert.equal(await ready(), "503 not_ready");
  assert.equal((await fetch(new URL("/health", hub.url))).status, 200);
  await server.signal("SIGCONT");
  await until(async () => await ready() === "200 undefined");
});

Deno.test("a hub counts and logs its answers, without data about the client", async () => {
  await using hub = await spawnHub("--metrics", "0", "--log", "json");
  const { key } = await hub.key("acme");
  await put(hub.url, key, moduleOffer("acme", "1.0.0"));
  const own = { "x-request-id": "0123456789abcdef" };
  await (await fetch(`${hub.url}/acme@1.0.0`, { headers: own })).text();
  await (await fetch(`${hub.url}?q=secret-words`)).text();
  await (await fetch(`${hub.url}/secret-name`, { headers: { "x-request-id": "secret id" } }))
    .text();
  await (await fetch(new URL('/secret"} 1', hub.url))).text();
  const at = PORT.exec(hub.serving.said)?.[1] ?? "";
  assert.match(at, /^http:\/\/127\.0\.0\.1:\d+\/metrics$/);
  const text = await (await fetch(at)).text();
  for (
    const line of [
      'pml_hub_requests_total{route="entry",status="200"} 1',
      'pml_hub_requests_total{route="entry",status="404"} 1',
      'pml_hub_requests_total{route="write",status="201"} 1',
      'pml_hub_requests_total{route="other",status="404"} 1',
      'pml_hub_request_seconds_bucket{route="entry",le="+Inf"} 2',
      'pml_hub_request_seconds_count{route="catalog"} 1',
      ...["pml_hub_store_up 1", "pml_hub_names 1"],
    ]
  ) assert.ok(text.split("\n").includes(line), `${line} in\n${text}`);
  for (const line of text.trim().split("\n")) {
    assert.match(line, /^(# TYPE \w+ \w+|\w+(\{(\w+="[\w.+]+",?)+\})? [\d.e+-]+)$/);
  }
  // Metrics are not on the port that a proxy exposes.
  assert.equal((await fetch(new URL("/metrics", hub.url))).status, 404);
  const foreign = await fetch(at, { headers: { origin: "https://evil.example" } });
  assert.equal(foreign.status, 403);
  const { stderr } = await hub.serving.end();
  assert.doesNotMatch(stderr + text, /secret/);
  assert.ok(!stderr.includes(key));
  const lines = stderr.trim().split("\n").map((line) => JSON.parse(line));
  const first = lines.find(({ id }) => id === "0123456789abcdef");
  assert.deepEqual([first.route, first.method, first.status, first.level], [
    ...["entry", "GET", 200, "info"],
  ]);
  assert.ok(first.ms > 0 && first.bytes > 50);
  for (const { id } of lines) assert.match(id, /^[0-9a-f-]{16,36}$/);
});
