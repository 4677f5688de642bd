/**
 * A hub whose store is on a PostgreSQL server: its commands, what it tells of itself, and copies.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { moduleOffer, put, spawnHub, spawnHubWith } from "./kit/hub.ts";
import { startPostgres } from "./kit/postgres.ts";
import { until } from "./kit/wait.ts";

const PORT = /"metrics":"([^"]+)"/;

Deno.test("A hub on PostgreSQL takes folders and publishers, and is copied by PostgreSQL's own tools", async () => {
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
  // Nothing of it lies in the folder, and the password nowhere.
  assert.ok(![...Deno.readDirSync(hub.ws.path)].some(({ name }) => name === "hub-data"));
  for (const [verb, tool] of [["backup", "pg_dump"], ["restore", "pg_restore"]] as const) {
    const { code, stderr } = await hub.run(verb, "copy");
    assert.equal(code, 2);
    assert.match(stderr, new RegExp(`DATABASE_URL is set.*\\n.*Run \`${tool} `));
  }
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

Deno.test("A hub says that it is not ready while its database is silent, and is ready again then", async () => {
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

Deno.test("A hub counts what it answers and writes it down, without a word of who asked", async () => {
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
  // It is not on the port that a proxy shows.
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
