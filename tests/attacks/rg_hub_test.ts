/**
 * A dishonest registry against a spawned PML: a real hub with a changed file, or with a proxy in
 * front of it.
 *
 * @module
 */

import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Fault } from "../kit/fake_registry.ts";
import { sendRequest } from "../kit/hub.ts";
import { rssOf } from "../kit/procwatch.ts";
import type { RawStdio } from "../kit/raw_stdio.ts";
import { TcpSink } from "../kit/sinks.ts";
import { until } from "../kit/wait.ts";
import type { Workspace } from "../kit/workspace.ts";
import {
  before,
  cachedCode,
  callOnce,
  callWithReply,
  goModule,
  hashOf,
  openHub,
  refreshLists,
  userWorkspace,
  within,
} from "./hub_scene.ts";
import { assertServes } from "./oracles.ts";

const BYTES = "UPDATE blobs SET bytes = ? WHERE integrity = ?";

async function forgetCode(ws: Workspace): Promise<void> {
  for (const file of await cachedCode(ws)) await rm(file);
}

/**
 * Makes calls until one is refused finally, and returns the refusal; questions are answered with
 * yes.
 */
async function refused(pml: RawStdio): Promise<string> {
  const { said } = await callWithReply(pml);
  assert.doesNotMatch(said, /^acme|evil/);
  return said;
}

Deno.test("RG1: code other than the pinned code never runs and is not cached, and the right code works again", async () => {
  await using scene = await openHub();
  await using ws = await userWorkspace(scene.hub.url);
  assert.equal((await callOnce(ws)).said, "acme 1.0.0");
  const { code = "" } = goModule("1.0.0");
  const right = new TextEncoder().encode(code);
  const flipped = right.slice();
  flipped[flipped.indexOf(0x61, code.indexOf("return"))]! ^= 1;
  const wrong = [
    new TextEncoder().encode(code.replace("acme 1.0.0", "evil")),
    ...[flipped, right.subarray(0, -1), new Uint8Array([...right, 10])],
    ...[new Uint8Array(), new Uint8Array(gzipSync(right))],
  ];
  for (const bytes of wrong) {
    await forgetCode(ws);
    assert.equal(scene.change(BYTES, bytes, hashOf(code)), 1);
    const { asked, said } = await callOnce(ws);
    assert.equal(asked, undefined);
    assert.match(said, /^INTEGRITY_MISMATCH: Cannot load "acme" 1\.0\.0/);
    assert.deepEqual(await cachedCode(ws), []);
  }
  scene.change(BYTES, right, hashOf(code));
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" });
  assert.equal((await cachedCode(ws)).length, 1);
});

Deno.test("RG1: a compressed bomb in place of an entry or its code is not unpacked", async () => {
  await using scene = await openHub();
  await using ws = await userWorkspace(scene.proxy.url);
  const bomb = new Uint8Array(gzipSync(new Uint8Array(64 << 20)));
  const fault = { body: bomb, headers: { "content-encoding": "gzip" } };
  await within(ws, async (pml) => {
    for (const path of ["/mcp/acme", "/mcp/acme@1.0.0"]) {
      scene.proxy.fault(path, fault);
      assert.match(await refused(pml), /^REGISTRY_BAD_RESPONSE: .*compressed/);
      scene.proxy.fault(path);
    }
    assert.deepEqual(await cachedCode(ws), []);
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
  });
});

Deno.test("RG2: an older version, or other content of the same version, leads to a question that shows it", async () => {
  await using scene = await openHub();
  await scene.publish("1.1.0");
  await using ws = await userWorkspace(scene.hub.url);
  assert.equal((await callOnce(ws)).said, "acme 1.1.0");
  const lock = await readFile(ws.file("pml.lock"), "utf8");
  const no = async (question: RegExp) => {
    await refreshLists(ws);
    const { asked, said } = await callOnce(ws, "acme:go", "No");
    assert.match(asked ?? said, question);
    assert.match(said, /answered no/);
    assert.equal(await readFile(ws.file("pml.lock"), "utf8"), lock);
  };
  // A pinned version is used as long as it exists, whatever version is the newest.
  scene.change("UPDATE newest SET version = '1.0.0' WHERE fqdn = 'acme'");
  await refreshLists(ws);
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.1.0" });
  scene.change("UPDATE servers SET version = '1.0.9' WHERE version = '1.1.0'");
  await no(/version: was "1\.1\.0", is "1\.0\.0" \(an older one\)/);
  scene.change("UPDATE servers SET version = '1.1.0' WHERE version = '1.0.9'");
  scene.change("UPDATE newest SET version = '1.1.0' WHERE fqdn = 'acme'");
  const { code = "", manifest } = goModule("1.1.0", { said: "evil" });
  const bytes = new TextEncoder().encode(code);
  scene.change("INSERT INTO blobs (integrity, bytes) VALUES (?, ?)", hashOf(code), bytes);
  scene.change(
    "UPDATE servers SET manifest = ?, code = ? WHERE version = '1.1.0'",
    ...[JSON.stringify(manifest), hashOf(code)],
  );
  await no(/integrity: was "sha256-[0-9a-f]{64}", is "sha256-[0-9a-f]{64}"/);
  // Its old content with a number above all others.
  scene.change("UPDATE servers SET manifest = replace(manifest, '1.1.0', '9.0.0')");
  await no(/version: was "1\.1\.0", is "9\.0\.0"/);
});

Deno.test("RG2: an entry that was removed from the lock is approved again, and then pinned", async () => {
  await using scene = await openHub();
  await using ws = await userWorkspace(scene.hub.url);
  assert.equal((await callOnce(ws)).said, "acme 1.0.0");
  await writeFile(ws.file("pml.lock"), '{"version": 1, "servers": {}}');
  await scene.publish("1.1.0", { said: "evil" });
  await refreshLists(ws);
  const { asked, said } = await callOnce(ws, "acme:go", "No");
  assert.match(asked ?? "it ran", /1\.1\.0/);
  assert.match(said, /answered no/);
  await rm(ws.file("pml.lock"));
  assert.match((await callOnce(ws, "acme:go", "No")).asked ?? "it ran", /1\.1\.0/);
});

Deno.test("RG2: a yanked version that is pinned is not replaced without a question", async () => {
  await using scene = await openHub();
  await using ws = await userWorkspace(scene.hub.url);
  assert.equal((await callOnce(ws)).said, "acme 1.0.0");
  const yank = (version: string) =>
    scene.hub.run("yank", `acme@${version}`, "--reason", "it leaks");
  assert.equal((await yank("1.0.0")).code, 0);
  await refreshLists(ws);
  // No other version has this name: approved servers still run, offline and with their code fetched
  // again.
  await forgetCode(ws);
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" });
  await using fresh = await userWorkspace(scene.hub.url);
  assert.doesNotMatch((await callOnce(fresh)).said, /^acme/);
  await scene.publish("0.9.0", { said: "evil" });
  await refreshLists(ws);
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" });
  await rm(join(ws.home, "cache"), { recursive: true });
  assert.deepEqual(await callOnce(ws), { asked: undefined, said: "acme 1.0.0" });
  await scene.publish("1.1.0", { said: "evil" });
  await refreshLists(ws);
  const { asked, said } = await callOnce(ws, "acme:go", "No");
  assert.match(asked ?? said, /version: was "1\.0\.0", is "1\.1\.0"/);
});

Deno.test("RG3: redirects to other origins, and endless ones, are not followed", async () => {
  await using scene = await openHub();
  await using sink = new TcpSink();
  const { proxy } = scene;
  await using ws = await userWorkspace(proxy.url);
  const elsewhere = [
    ...[`http://127.0.0.1:${sink.port}/mcp/acme`, `https://127.0.0.1:${sink.port}/`],
    ...["file:///etc/passwd", "data:application/json,{}", scene.hub.url, "//evil.example/x"],
    proxy.url.replace("127.0.0.1", "localhost"),
  ];
  await within(ws, async (pml) => {
    for (const path of ["/mcp/acme", "/mcp/acme@1.0.0"]) {
      for (const redirect of elsewhere) {
        proxy.fault(path, { redirect });
        assert.match(await refused(pml), /^REGISTRY_BAD_RESPONSE: .*another origin/, redirect);
      }
      for (let hop = 1; hop <= 11; hop++) {
        proxy.fault(`/mcp/hop${hop}`, { redirect: hop === 11 ? path : `/mcp/hop${hop + 1}` });
      }
      const before = proxy.asked.length;
      for (const redirect of ["/mcp/hop1", path]) {
        proxy.fault(path, { redirect });
        assert.match(await refused(pml), /^REGISTRY_BAD_RESPONSE: .*more than 3 times/, redirect);
      }
      assert.equal(proxy.asked.length - before, 8);
      proxy.fault(path, { redirect: `${path}?again`, times: 1 });
      const { said } = await callWithReply(pml);
      if (path.includes("@")) assert.equal(said, "acme 1.0.0");
      else await forgetCode(ws);
    }
  });
  sink.assertSilent();
});

const TYPES = [
  ...["text/html", "text/plain", "application/javascript", "video/mp2t", "", undefined],
  ...["application/typescript; charset=utf-16", "application/json; charset=utf-7"],
  ...["application/typescript, text/html", "application/typescript;boundary=x"],
] as const;

Deno.test("RG4: an entry or code with a wrong content type is not used", async () => {
  await using scene = await openHub();
  const { proxy } = scene;
  await using ws = await userWorkspace(proxy.url);
  const own = { "/mcp/acme": "application/json", "/mcp/acme@1.0.0": "application/typescript" };
  await within(ws, async (pml) => {
    for (const [path, type] of Object.entries(own)) {
      const others = [...TYPES, ...Object.values(own).filter((one) => one !== type)];
      for (const contentType of others) {
        proxy.fault(path, { contentType });
        assert.match(await refused(pml), /^REGISTRY_BAD_RESPONSE: .*content type/, contentType);
      }
      // Code is not accepted as JSON, nor JSON as code, with any content type.
      const body = path.includes("@")
        ? JSON.stringify(goModule("1.0.0").manifest)
        : goModule("1.0.0").code;
      proxy.fault(path, { body: body ?? "" });
      assert.match(await refused(pml), /^(REGISTRY_BAD_RESPONSE|INTEGRITY_MISMATCH): /);
      proxy.fault(path);
    }
    assert.deepEqual(await cachedCode(ws), []);
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
  });
});

Deno.test("RG5: a response that is too long, has a wrong length or never ends is aborted in time", async () => {
  await using scene = await openHub();
  const { proxy } = scene;
  const long = /^REGISTRY_BAD_RESPONSE: .*longer than 1048576 bytes/;
  const endless = { endless: true, body: "x".repeat(65_536) } as const;
  const away = /^REGISTRY_OFFLINE: /;
  const faults: readonly (readonly [Fault, RegExp])[] = [
    [endless, long],
    [{ headers: { "content-length": "2000000000" } }, long],
    [{ headers: { "content-length": "10" } }, /^REGISTRY_BAD_RESPONSE: .*not JSON/],
    [{ headers: { "content-length": "100000" } }, away],
    [{ headers: { "x-long": "x".repeat(20 << 20) } }, /^REGISTRY_/],
    [{ byteMs: 1_000 }, away],
    [{ hang: true }, away],
  ];
  await Promise.all(faults.map(async ([fault, expected]) => {
    await using spoiled = await before(scene.hub);
    await using one = await userWorkspace(spoiled.url);
    spoiled.fault("/mcp/acme", fault);
    await within(one, async (pml) => {
      const rss = await rssOf(pml.pid);
      const since = performance.now();
      assert.match(await refused(pml), expected, JSON.stringify(fault).slice(0, 80));
      const took = performance.now() - since;
      assert.ok(took < 30_000, `${took} ms`);
      assert.ok(await rssOf(pml.pid) - rss < 120 << 20, "memory does not stay flat");
      await assertServes(pml);
      // The test measures its memory.
    }, { ownProcess: true });
  }));
  await using ws = await userWorkspace(proxy.url);
  proxy.fault("/mcp/acme@1.0.0", endless);
  await within(ws, async (pml) => {
    assert.match(await refused(pml), /longer than 2097152 bytes/);
    proxy.fault("/mcp/acme@1.0.0");
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
  });
});

Deno.test("RG14: an etag proves nothing: the hash of the content decides, also after a change of the hub", async () => {
  await using scene = await openHub();
  const { hub, proxy } = scene;
  await using ws = await userWorkspace(proxy.url);
  const { code = "", manifest } = goModule("1.0.0");
  const json = { accept: "application/json" };
  const old = (await sendRequest(`${hub.url}/acme`, { method: "GET", headers: json })).headers.get(
    "etag",
  );
  await within(ws, async (pml) => {
    // Nothing was fetched before, so no entry can be unchanged.
    proxy.fault("/mcp/acme", { status: 304, body: "" });
    assert.match(await refused(pml), /^REGISTRY_BAD_RESPONSE: .*304/);
    proxy.fault("/mcp/acme");
    const etag = `"${hashOf(code)}"`;
    proxy.fault("/mcp/acme@1.0.0", { corrupt: true, etag });
    assert.match(await refused(pml), /^INTEGRITY_MISMATCH: /);
    proxy.fault("/mcp/acme@1.0.0", { etag: '"x"' });
    assert.match(await refused(pml), /^REGISTRY_BAD_RESPONSE: .*etag/);
    // A cache in between that keeps one response for both, in spite of `vary`.
    proxy.fault("/mcp/acme@1.0.0", {
      contentType: "application/json",
      body: JSON.stringify(manifest),
    });
    assert.match(await refused(pml), /^REGISTRY_BAD_RESPONSE: .*content type/);
    proxy.fault("/mcp/acme@1.0.0");
    assert.equal((await callWithReply(pml)).said, "acme 1.0.0");
  });
  // A hub answers "unchanged" only about its present content.
  const evil = JSON.stringify(manifest).replace('"warnings":[]', '"warnings":["evil"]');
  const conditional = { method: "GET", headers: { ...json, "if-none-match": old ?? "" } };
  assert.equal((await sendRequest(`${hub.url}/acme`, conditional)).status, 304);
  assert.equal(scene.change("UPDATE servers SET manifest = ?", evil), 1);
  // A write that bypasses the hub does not wait for its cache, as the hub and its commands do.
  await until(async () => (await sendRequest(`${hub.url}/acme`, conditional)).status === 200);
  const now = await sendRequest(`${hub.url}/acme`, conditional);
  assert.deepEqual([now.status, now.body.warnings], [200, ["evil"]]);
  // The proxy answers "unchanged" about an entry whose cached file is damaged.
  const folder = join(ws.home, "cache");
  for await (const { name } of Deno.readDir(folder)) {
    if (!name.endsWith(".entry")) continue;
    const text = await readFile(join(folder, name), "utf8");
    await writeFile(join(folder, name), text.replace('"warnings":[]', '"warnings":["evil"]'));
  }
  proxy.asked.length = 0;
  proxy.fault("/mcp/acme", { status: 304, body: "" });
  const { said } = await callOnce(ws);
  assert.match(said, /^REGISTRY_BAD_RESPONSE: .*304/);
  const [asked] = proxy.asked.filter(({ target }) => target === "/mcp/acme");
  assert.equal(asked?.headers["if-none-match"], undefined, "a tag of a damaged entry was sent");
});
