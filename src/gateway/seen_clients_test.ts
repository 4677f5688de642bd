/**
 * The file of the clients that used PML is bounded, and several processes may write it at once.
 *
 * @module
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { makeWorkspace } from "../../tests/kit/workspace.ts";
import {
  clientsThatCannotAsk,
  recordClients,
  type SeenClient,
  seenClient,
} from "./seen_clients.ts";

const NOW = Date.UTC(2026, 10, 30);
const DAY_MS = 24 * 3_600_000;

function client(name: string, more: Partial<SeenClient> = {}): SeenClient {
  return { ...seenClient({ name, version: "1.0", asks: false }, NOW), ...more };
}

async function clientsIn(home: string): Promise<readonly SeenClient[]> {
  return JSON.parse(await Deno.readTextFile(join(home, "clients.json"))).clients;
}

Deno.test("a client that cannot ask is named, and no longer after an update that can", async () => {
  await using ws = await makeWorkspace();
  const { home } = ws;
  await recordClients(home, [client("gemini"), client("codex", { asks: true })], NOW);
  assert.deepEqual(clientsThatCannotAsk(home, NOW).map(({ name }) => name), ["gemini"]);
  const newer = client("gemini", { version: "2.0", asks: true, seen: NOW + 1 });
  await recordClients(home, [newer], NOW + 1);
  assert.deepEqual(clientsThatCannotAsk(home, NOW + 1), []);
  assert.equal((await clientsIn(home)).length, 3);
});

Deno.test("a client that was not seen for a month is not named; a time in the future counts as now", async () => {
  await using ws = await makeWorkspace();
  const clients = [
    client("old", { seen: NOW - 31 * DAY_MS }),
    client("ahead", { seen: NOW + 400 * DAY_MS }),
  ];
  await recordClients(ws.home, clients, NOW);
  const [one, ...more] = clientsThatCannotAsk(ws.home, NOW);
  assert.deepEqual([one?.name, one?.seen, more], ["ahead", NOW, []]);
});

Deno.test("names are escaped and short, and ten thousand of them leave fifty", async () => {
  await using ws = await makeWorkspace();
  const { home } = ws;
  const hostile = ['a"b\\', "x\u001b[2J\n\u202e", "n".repeat(1_000_000), "__proto__", "<b>"];
  await recordClients(
    home,
    hostile.map((name) => seenClient({ name, version: name, asks: false }, NOW)),
    NOW,
  );
  const names = (await clientsIn(home)).map(({ name }) => name);
  assert.equal(names.length, hostile.length);
  for (const name of names) {
    assert.doesNotMatch(name, /[\p{Cc}\p{Cf}]/u);
    assert.ok(name.length < 200);
  }
  const many = Array.from({ length: 10_000 }, (_, at) => client(`c${at}`, { seen: NOW + at }));
  await recordClients(home, many, NOW + 20_000);
  const last = await clientsIn(home);
  assert.deepEqual([last.length, last[0]?.name], [50, "c9999"]);
  assert.ok((await Deno.stat(join(home, "clients.json"))).size < 20_000);
});

Deno.test("processes that record at the same time lose no client", async () => {
  await using ws = await makeWorkspace();
  const all = Array.from({ length: 40 }, (_, at) => client(`c${at}`));
  await Promise.all(all.map((one) => recordClients(ws.home, [one], NOW)));
  assert.equal((await clientsIn(ws.home)).length, all.length);
});

Deno.test("a client that is recorded already is not written again within an hour", async () => {
  await using ws = await makeWorkspace();
  const path = join(ws.home, "clients.json");
  await recordClients(ws.home, [client("a")], NOW);
  const { ino } = await Deno.stat(path);
  await recordClients(ws.home, [client("a", { seen: NOW + 60_000 })], NOW + 60_000);
  assert.equal((await Deno.stat(path)).ino, ino);
  await recordClients(ws.home, [client("a", { seen: NOW + DAY_MS })], NOW + DAY_MS);
  assert.equal((await clientsIn(ws.home))[0]?.seen, NOW + DAY_MS);
});

Deno.test("a broken file counts as empty, and a link is not followed", async () => {
  await using ws = await makeWorkspace();
  const { home } = ws;
  const path = join(home, "clients.json");
  for (const text of ["", "{", "[]", '{"clients": [1, {"name": 2}, null]}', '{"clients": {}}']) {
    await Deno.writeTextFile(path, text);
    assert.deepEqual(clientsThatCannotAsk(home, NOW), []);
  }
  await recordClients(home, [client("a")], NOW);
  assert.equal((await clientsIn(home)).length, 1);
  await Deno.remove(path);
  await Deno.symlink(ws.outside, path);
  await recordClients(home, [client("a")], NOW);
  await ws.assertCanaries();
});
