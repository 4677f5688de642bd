/**
 * Two hubs on one store cache answers, and still answer alike: after one hub confirms a change, the
 * other one shows it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { moduleOffer, put, sendRequest, startHub } from "./kit/hub.ts";
import { startPostgres, type TestPostgres } from "./kit/postgres.ts";
import { until } from "./kit/wait.ts";

const ROUNDS = 40;

/** Starts two hubs on one database, or else on one file, with a key. */
async function pair(server?: TestPostgres, rate = "100000") {
  await using opened = new AsyncDisposableStack();
  const DATABASE_URL = await server?.database() ?? "";
  const one = opened.use(
    await startHub({ env: { DATABASE_URL }, args: ["--rate", rate], ownProcess: true }),
  );
  const other = opened.use(await one.again());
  const { key } = await one.key("acme");
  const stack = opened.move();
  return {
    ...{ one: one.url, other: `http://127.0.0.1:${other.port}/mcp`, key, DATABASE_URL },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

Deno.test("two hubs share the limit of changes of a key", async () => {
  await using server = await startPostgres();
  await using hubs = await pair(server, "4");
  const start = performance.now();
  const told = await Promise.all(Array.from({ length: 16 }, (_, at) => {
    const url = at % 2 === 0 ? hubs.one : hubs.other;
    return put(url, hubs.key, moduleOffer("acme", `1.0.${at}`));
  }));
  const grown = Math.floor((performance.now() - start) / 15_000);
  const statuses = told.map(({ status }) => status);
  const limited = statuses.filter((status) => status === 429);
  assert.ok(limited.length >= 12 - grown, `${statuses}`);
  // A key has four lanes at a hub, so nothing else is refused.
  assert.equal(statuses.filter((status) => status === 201).length + limited.length, 16);
});

async function versionAt(url: string): Promise<string | null> {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.headers.get("x-pml-version");
}

for (const store of ["PostgreSQL", "SQLite"]) {
  Deno.test(`after one hub confirms a publish, tag or yank, the other one shows it, on ${store}`, async () => {
    await using server = store === "SQLite" ? undefined : await startPostgres();
    await using hubs = await pair(server);
    await assertAlike(hubs);
  });
}

async function assertAlike(
  { one, other, key }: Pick<Awaited<ReturnType<typeof pair>>, "one" | "other" | "key">,
): Promise<void> {
  assert.equal((await put(one, key, moduleOffer("acme", "1.0.0"))).status, 201);
  let isOver = false;
  // The other hub has cached all of it a moment ago.
  const readers = ["acme", "acme@beta", "?q=acme", "acme"].map(async (path) => {
    while (!isOver) await versionAt(path.startsWith("?") ? other + path : `${other}/${path}`);
  });
  const odd: string[] = [];
  const same = (what: string, found: string | null, wanted: string | null) => {
    if (found !== wanted) odd.push(`${what}: ${found}, wanted ${wanted}`);
  };
  const post = async (method: string, path: string, body: object) =>
    assert.equal((await sendRequest(`${one}/${path}`, { method, key, body })).status, 200, path);
  for (let at = 1; at <= ROUNDS; at++) {
    const version = `1.0.${at}`;
    assert.equal((await put(one, key, moduleOffer("acme", version))).status, 201);
    same("published", await versionAt(`${other}/acme`), version);
    await post("PUT", "acme/tags/beta", { version });
    same("tagged", await versionAt(`${other}/acme@beta`), version);
    await post("POST", `acme@${version}/yank`, {});
    same("yanked", await versionAt(`${other}/acme`), at === 1 ? "1.0.0" : `1.0.${at - 1}`);
    same("its tag", await versionAt(`${other}/acme@beta`), null);
    await post("POST", `acme@${version}/unyank`, {});
    const { body } = await sendRequest(`${other}?q=acme`, { method: "GET" });
    same("shown again", body.items[0]?.version ?? null, version);
  }
  isOver = true;
  await Promise.all(readers);
  assert.deepEqual(odd, []);
}

Deno.test("hubs notice a change in the database soon, and use no cache while the database is silent", async () => {
  await using server = await startPostgres();
  await using hubs = await pair(server);
  const { one, other, key, DATABASE_URL } = hubs;
  for (const version of ["1.0.0", "1.1.0"]) {
    assert.equal((await put(one, key, moduleOffer("acme", version))).status, 201);
  }
  const isAnswered = async (wanted: string) => {
    const found = await Promise.all([one, other].map((url) => versionAt(`${url}/acme`)));
    return found.every((version) => version === wanted);
  };
  assert.ok(await isAnswered("1.1.0"));
  const chosen = (version: string) =>
    server.psql(DATABASE_URL, `UPDATE pml_hub.newest SET version = '${version}'`);
  await chosen("1.0.0");
  await until(() => isAnswered("1.0.0"));
  await server.signal("SIGSTOP");
  await new Promise((done) => setTimeout(done, 60));
  const signal = AbortSignal.timeout(1_000);
  await assert.rejects(fetch(`${one}/acme`, { signal }), { name: "TimeoutError" });
  await server.signal("SIGCONT");
  await until(() => isAnswered("1.0.0"));
  await server.psql(DATABASE_URL, "TRUNCATE pml_hub.newest");
  await until(async () => await versionAt(`${one}/acme`) === null);
});
