/**
 * Hostile texts and endless catalogs, from publishers to a spawned hub, and in the hub's file,
 * where a spawned PML reads them.
 *
 * @module
 */

import assert from "node:assert/strict";
import { sendRequest } from "../kit/hub.ts";
import { rssOf } from "../kit/procwatch.ts";
import { runPml } from "../kit/run.ts";
import {
  before,
  callOnce,
  callWithReply,
  goModule,
  openHub,
  refreshLists,
  userWorkspace,
  within,
} from "./hub_scene.ts";
import { assertServes, textOf } from "./oracles.ts";

/** Invisible characters, and characters that move the cursor of a terminal. */
const UNSEEN = /(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const HOSTILE = [
  ...["\u001b[2J\u001b[H", "\u001b]0;evil\u0007", "\u202eevil\u2066", "a\u200bb\ufeff", "\u0000"],
  ...["\u009b2J", "ok\r\u001b[A", "\u2029"],
];

Deno.test("RG13: a hub refuses invisible texts, and PML shows them without invisible characters", async () => {
  await using scene = await openHub();
  const { hub, key } = scene;
  const { manifest, code } = goModule("1.1.0");
  const at = `${hub.url}/acme@1.1.0`;
  for (const text of HOSTILE) {
    for (const more of [{ description: text }, { warnings: [text] }]) {
      const body = { code, manifest: { ...manifest, ...more } };
      assert.equal(
        (await sendRequest(at, { method: "PUT", key, body })).status,
        400,
        JSON.stringify(text),
      );
    }
  }
  const { manifest: kept } = goModule("1.0.0");
  const text = HOSTILE.join(" x ");
  const tools = (kept.tools as readonly object[]).map((tool) => ({ ...tool, description: text }));
  const said = { ...kept, tools, description: text, warnings: [text] };
  assert.equal(scene.change("UPDATE servers SET manifest = ?", JSON.stringify(said)), 1);
  await using ws = await userWorkspace(hub.url);
  await within(ws, async (pml) => {
    const found = textOf(await pml.callTool("search", { query: "go" }));
    assert.match(found, /^acme:go/m);
    assert.doesNotMatch(found, UNSEEN);
    const { asked: question = "" } = await callWithReply(pml, "acme:go", "No");
    assert.match(question, /author warns/);
    assert.doesNotMatch(question, UNSEEN);
    assert.doesNotMatch(pml.stderr, UNSEEN);
  });
  const result = await runPml(ws, ["search", "go"]);
  assert.doesNotMatch(result.stdout + result.stderr, UNSEEN);
});

Deno.test("RG13: a text of 10 MB in a catalog invalidates that catalog, and nothing else", async () => {
  await using scene = await openHub();
  const { manifest } = goModule("1.0.0");
  await using ws = await userWorkspace(scene.hub.url);
  assert.equal((await callOnce(ws)).said, "acme 1.0.0");
  const long = JSON.stringify({ ...manifest, description: "x".repeat(10_000_000) });
  assert.equal(scene.change("UPDATE servers SET manifest = ?", long), 1);
  assert.match(await refreshLists(ws), /longer than \d+ bytes/);
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" });
});

Deno.test("RG13: a catalog that is endless, or has 100,000 entries, is read up to its limit", async () => {
  await using scene = await openHub();
  const { hub } = scene;
  let at = 0;
  const cursors: readonly (readonly [() => string, number])[] = [
    [() => "again", 2],
    [() => `next${at++}`, 200],
  ];
  for (const [cursor, most] of cursors) {
    const spoil = (body: string) => JSON.stringify({ ...JSON.parse(body), next_cursor: cursor() });
    await using spoiled = await before(hub, spoil);
    await using ws = await userWorkspace(spoiled.url);
    assert.match(await refreshLists(ws), /has no end/);
    assert.equal(spoiled.paths.length, most);
    assert.equal((await callOnce(ws)).said, "acme 1.0.0");
  }
  const count = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 100000)";
  const name = "printf('m%06d', x)";
  scene.change(
    `INSERT INTO servers (fqdn, version, type, routing, manifest, created)
     ${count} SELECT ${name}, version, type, routing, json_set(manifest, '$.fqdn', ${name}), created
     FROM n, servers WHERE fqdn = 'acme'`,
  );
  scene.change(
    `INSERT INTO newest (fqdn, version, words) ${count} SELECT ${name}, '1.0.0', ${name} FROM n`,
  );
  await using ws = await userWorkspace(scene.proxy.url);
  assert.match(await refreshLists(ws), /has no end: after 50000 entries/);
  assert.equal(scene.proxy.paths.length, 100);
  await within(ws, async (pml) => {
    assert.match(textOf(await pml.callTool("search", { query: "m000123" })), /^m000123:go/m);
    await assertServes(pml);
    assert.ok(await rssOf(pml.pid) < 500 << 20, `${await rssOf(pml.pid)}`);
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
    // The test measures its memory.
  }, { ownProcess: true });
});
