/**
 * RG9 for the hub as a server: it is killed at any moment while publishers write and users read,
 * and its disk is full for a time.
 *
 * @module
 */

import assert from "node:assert/strict";
import { openDatabase } from "../../hub/src/store/_database.ts";
import { EmbeddedStore } from "../../hub/src/store/embedded.ts";
import { folder, server } from "../../hub/src/store/_stores_test.ts";
import { moduleOffer, put, sendRequest, spawnHub, spawnHubWith, startHub } from "../kit/hub.ts";
import { freePort } from "../kit/free_port.ts";
import { type Command, HUB } from "../kit/pml_command.ts";
import { limitFileSize, startPostgres } from "../kit/postgres.ts";
import { type Serving, spawnServing } from "../kit/registry_contract.ts";
import { runPml } from "../kit/run.ts";
import { until } from "../kit/wait.ts";
import { userWorkspace } from "./hub_scene.ts";

const LONG = "x".repeat(60_000);
/** A write beyond the limit of a process fails, as on a full disk, and does not end the process. */
const BESIDE: Command = ["sh", "-c", `trap "" XFSZ; exec "$0" "$@"`, ...HUB];

async function read(url: string, path: string) {
  return await sendRequest(`${url}/${path}`, { method: "GET" });
}

Deno.test("RG9: a hub that is killed repeatedly sends readers only confirmed data, or nothing", async () => {
  const port = freePort();
  await using hub = await startHub({
    args: ["--port", `${port}`, "--rate", "100000"],
    ownProcess: true,
  });
  const { key } = await hub.key("acme");
  // A rule that names a server answers its first use.
  const allow = Array.from({ length: 2_000 }, (_, at) => `n${at}:go`);
  await using ws = await userWorkspace(hub.url, { pml: { permissions: { allow } } });
  const messages: string[] = [];
  let [isOver, at, ran] = [false, 0, 0];
  const publishing = async () => {
    while (!isOver) {
      const name = `n${at++}:go`;
      const made = await put(hub.url, key, moduleOffer(name, "1.0.0", name)).catch(() => undefined);
      if (made?.status === 201) messages.push(name);
      else await new Promise((done) => setTimeout(done, 20));
    }
  };
  const calling = async () => {
    await until(() => messages.length > 0);
    for (let isLast = false; !isLast;) {
      isLast = isOver;
      const name = messages.at(-1) ?? "";
      const { code, stdout, stderr } = await runPml(ws, ["call", name, "who=you"]);
      if (code === 0) assert.equal(stdout.trim(), `${name}you`);
      else assert.match(stderr, /REGISTRY_OFFLINE|UNKNOWN_TOOL|APPROVAL_REQUIRED/, stderr);
      if (code === 0) ran++;
    }
  };
  let serving: Serving = hub.serving;
  const lanes = [publishing(), publishing(), calling()];
  try {
    for (let round = 0; round < 5; round++) {
      const [before, then] = [messages.length, ran];
      await until(() => messages.length > before + 15 && ran > then);
      Deno.kill(serving.pid, "SIGKILL");
      await serving[Symbol.asyncDispose]();
      serving = await hub.again();
    }
  } finally {
    isOver = true;
    await Promise.all(lanes);
  }
  for (const name of messages) {
    const { status, body } = await read(hub.url, `${name}@1.0.0`);
    assert.deepEqual([status, body], [200, moduleOffer(name, "1.0.0", name).code], name);
  }
  // The lock contains all published servers, and no incomplete one.
  const { servers } = JSON.parse(await Deno.readTextFile(ws.file("pml.lock")));
  for (const [name, { integrity }] of Object.entries<{ integrity: string }>(servers)) {
    assert.equal(integrity, moduleOffer(name, "1.0.0", name).manifest.integrity);
  }
  assert.ok(Object.keys(servers).length >= 5);
  await serving[Symbol.asyncDispose]();
});

/** Publishes until the store refuses, and continues for a while. */
async function filled(url: string, key: string, offers: Iterable<ReturnType<typeof moduleOffer>>) {
  const told: ReturnType<typeof moduleOffer>[] = [];
  const refused: typeof told = [];
  for (const offer of offers) {
    const { status, body, headers } = await put(url, key, offer);
    if (status === 201) told.push(offer);
    else {
      assert.deepEqual([status, body.error], [503, "not_kept"]);
      assert.equal(headers.get("retry-after"), "2");
      refused.push(offer);
    }
    if (refused.length === 4) break;
  }
  assert.ok(told.length > 0 && refused.length === 4, `${told.length} and ${refused.length}`);
  return { told, refused };
}

async function assertThere(
  url: string,
  { told, refused }: Awaited<ReturnType<typeof filled>>,
): Promise<void> {
  for (const { manifest, code } of told) {
    const { status, body } = await read(url, `${manifest.fqdn}`);
    assert.deepEqual([status, body], [200, code]);
  }
  for (const { manifest } of refused) {
    assert.equal((await read(url, `${manifest.fqdn}`)).status, 404);
    const { body } = await sendRequest(`${url}?q=${manifest.fqdn}`, { method: "GET" });
    assert.deepEqual(body.items, []);
  }
  const ready = await (await fetch(new URL("/ready", url))).json();
  assert.equal(ready.names, told.length);
}

Deno.test("RG9: a hub with a full disk refuses publishers, serves readers, and recovers when there is space", async () => {
  await using hub = await spawnHub("--rate", "100000");
  const { key } = await hub.key("acme");
  const serve = ["serve", "--port", "0", "--json", "--rate", "100000"];
  await using full = await spawnServing(hub.ws, [...BESIDE, ...serve]);
  const url = `http://127.0.0.1:${full.port}/mcp`;
  const offers = Array.from(
    { length: 40 },
    (_, at) => moduleOffer(`acme.n${at}`, "1.0.0", at + LONG),
  );
  await limitFileSize(full.pid, 400_000);
  const all = await filled(url, key, offers);
  await assertThere(url, all);
  // The publisher gets an error, and so does a hub that starts with this file.
  await Deno.writeTextFile(
    hub.ws.file("acme.more@1.0.0.ts"),
    moduleOffer("acme.more", "1.0.0", LONG).code ?? "",
  );
  const words = ["publish", "acme.more@1.0.0.ts", "--to", url, "--yes"];
  const env = { PML_HUB_KEY: key };
  const result = await runPml(hub.ws, words, { command: HUB, env });
  assert.match(result.stderr, /answered 503 \(/);
  Deno.kill(full.pid, "SIGKILL");
  await using again = await spawnServing(hub.ws, [...BESIDE, ...serve]);
  const other = `http://127.0.0.1:${again.port}/mcp`;
  await limitFileSize(again.pid, 4_096);
  await assertThere(other, all);
  assert.equal((await put(other, key, all.refused[0] ?? offers[0]!)).status, 503);
  await limitFileSize(again.pid, "unlimited");
  for (const offer of all.refused) assert.equal((await put(other, key, offer)).status, 201);
  await assertThere(other, { told: [...all.told, ...all.refused], refused: [] });
  const { stderr } = await again.end();
  assert.match(stderr, /^warning: Cannot publish: disk I\/O error\n$/);
});

Deno.test("RG9: a full disk that SQLite reports leaves nothing of a change, and the next change succeeds", async () => {
  await using place = await folder();
  const db = openDatabase(`${place.path}/hub.db`);
  await using store = new EmbeddedStore(db);
  const size = Number(db.prepare("PRAGMA page_count").get()?.page_count);
  db.exec(`PRAGMA max_page_count = ${size + 20}`);
  const offer = (at: number) => ({
    ...server(`n${at}`, "1.0.0"),
    code: new Uint8Array(9_000).fill(at),
  });
  let at = 0;
  await assert.rejects(async () => {
    for (; at < 100; at++) await store.add([offer(at)]);
  }, /disk is full/);
  assert.deepEqual([await store.size(), await store.entry(`n${at}`, undefined)], [at, undefined]);
  const blobs = db.prepare("SELECT count(*) AS count FROM blobs").get()?.count;
  assert.equal(blobs, at);
  db.exec(`PRAGMA max_page_count = ${size + 200}`);
  assert.deepEqual(await store.add([offer(at)]), ["added"]);
});

Deno.test("RG9: a hub whose database server is full refuses publishers, serves readers, and recovers", async () => {
  await using postgres = await startPostgres();
  await using hub = await spawnHubWith(
    { DATABASE_URL: await postgres.database() },
    "--rate",
    "100000",
  );
  const { key } = await hub.key("acme");
  // No file may be larger than a segment of the log of PostgreSQL.
  await postgres.limit(17_000_000);
  const offers = Array.from({ length: 20 }, (_, at) => {
    const bytes = new Uint8Array(1_300_000);
    for (let from = 0; from < bytes.length; from += 65_000) {
      crypto.getRandomValues(bytes.subarray(from, from + 65_000));
    }
    return moduleOffer(`acme.n${at}`, "1.0.0", bytes.toBase64());
  });
  const all = await filled(hub.url, key, offers);
  await assertThere(hub.url, all);
  await postgres.limit("unlimited");
  for (const offer of all.refused) assert.equal((await put(hub.url, key, offer)).status, 201);
  await assertThere(hub.url, { told: [...all.told, ...all.refused], refused: [] });
});
