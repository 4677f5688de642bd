import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import fc from "fast-check";
import type { Progress } from "../protocol/call.ts";
import { PmlError } from "../core/errors.ts";
import { parseExact } from "../core/exact_json.ts";
import { fails, never, Scene, until } from "./_scene_test.ts";
import {
  code,
  denoEntry,
  entries,
  Folder,
  hash,
  json,
  ScriptedRegistry,
} from "./_scripted_test.ts";
import { manifestHash } from "./manifest.ts";
import { signManifest } from "./signature.ts";

const ONE = "export const hello = () => 1;";
const TWO = "export const hello = () => 2;";

function hello(text = ONE, more = {}) {
  return { hello: { json: denoEntry("hello", text, more), text } };
}

Deno.test("Registries requests an entry and its code once and then uses the cache", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(entries(hello()));
  const { registries } = new Scene(home, [registry]);
  assert.equal(registries.cachedEntry("hello"), undefined);
  const entry = await registries.find("hello", never);
  assert.ok(entry);
  assert.equal(entry.source, registry.url);
  assert.equal(entry.vouched, `not authenticated: ${registry.host} is reached without TLS`);
  assert.deepEqual([entry.offline, entry.gone, entry.older], [false, false, false]);
  assert.equal(registries.hasCode(entry), false);
  const told: Progress[] = [];
  const [bytes, same] = await Promise.all([
    registries.code(entry, { ...never, onProgress: (progress) => told.push(progress) }),
    registries.code(entry, never),
  ]);
  assert.equal(new TextDecoder().decode(bytes), ONE);
  assert.equal(same, bytes);
  assert.equal(told.at(-1)?.progress, ONE.length);
  assert.equal(registries.hasCode(entry), true);
  assert.deepEqual(registry.targets, ["/hello", "/hello@1.0.0"]);
  registry.stop();
  // Another process, and no registry.
  const later = new Scene(home, [registry]).registries;
  const foundEntry = later.cachedEntry("hello");
  assert.equal(foundEntry?.hash, entry.hash);
  assert.equal(foundEntry?.source, registry.url);
  assert.equal(new TextDecoder().decode(await later.code(foundEntry ?? entry, never)), ONE);
  assert.equal(registry.asked.length, 2);
});

Deno.test("Registries keeps the texts of numbers in an entry and hashes them as doubles", async () => {
  using home = new Folder();
  const tool = '{"name":"hello","inputSchema":{"type":"object","properties":{"id":' +
    '{"minimum":1.0,"maximum":9223372036854775807,"enum":[725653563933458432]}}}}';
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pem = privateKey.export({ format: "pem", type: "pkcs8" }).toString();
  const key = publicKey.export({ format: "pem", type: "spki" }).toString();
  await using registry = new ScriptedRegistry();
  const signing = { registry: registry.url, privateKey: pem };
  const [exact, rounded] = [parseExact(tool), JSON.parse(tool)]
    .map((tool) => denoEntry("hello", ONE, { tools: [tool] }))
    .map((entry) => signManifest(entry, signing, "2027-01-31T12:00:00Z"));
  assert.deepEqual(exact?.signature, rounded?.signature);
  registry.answer = entries({ hello: { json: exact ?? {} } });
  const registriesNow = () => new Scene(home, [registry], { publicKey: key }).registries;
  const foundEntry = await registriesNow().find("hello", never);
  const again = registriesNow().cachedEntry("hello");
  for (const one of [foundEntry, again]) {
    const [listed] = one?.manifest.tools ?? [];
    assert.equal(JSON.stringify(listed?.definition), tool);
  }
  assert.equal(foundEntry?.hash, manifestHash(JSON.parse(JSON.stringify(foundEntry?.manifest))));
});

Deno.test("Registries returns and caches only code with the hash of its entry", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry();
  const { registries, changed } = new Scene(home, [registry]);
  const entry = hello();
  const wrong = [TWO, ONE.slice(0, -1), `${ONE} `, ONE.replace("1", "l"), ""];
  for (const text of wrong) {
    // The etag is the hash in the entry, but the code is not.
    registry.answer = (asked) =>
      asked.headers.get("accept") === "application/typescript"
        ? code(text, { etag: `"${hash(ONE)}"` })
        : entries(entry)(asked);
    const foundEntry = await registries.find("hello", never);
    assert.ok(foundEntry);
    await fails(
      registries.code(foundEntry, never),
      "INTEGRITY_MISMATCH",
      /"hello" 1\.0\.0 .* its code is/,
    );
    assert.equal(registries.hasCode(foundEntry), false);
  }
  const stored = [...Deno.readDirSync(join(home.path, "cache"))].map(({ name }) => name);
  assert.deepEqual(stored.filter((name) => name.endsWith(".code")), []);
  // Code that changed under its version: the entry is requested again and has changed, too.
  const found = await registries.find("hello", never);
  assert.ok(found);
  await until(() => registry.asked.length >= 2 * wrong.length);
  registry.answer = entries(hello(TWO));
  await fails(registries.code(found, never), "INTEGRITY_MISMATCH");
  await until(() => changed.length > 0);
  const anew = await registries.find("hello", never);
  assert.equal(new TextDecoder().decode(await registries.code(anew ?? found, never)), TWO);
  // A cached file that was changed is fetched again.
  Deno.writeTextFileSync(join(home.path, "cache", `${hash(TWO)}.code`), ONE);
  assert.equal(new TextDecoder().decode(await registries.code(anew ?? found, never)), TWO);
});

Deno.test("Registries requests an entry again without its etag if the cached file was changed", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(entries(hello()));
  await new Scene(home, [registry]).registries.find("hello", never);
  const [file = ""] = [...Deno.readDirSync(join(home.path, "cache"))].map(({ name }) => name);
  const path = join(home.path, "cache", file);
  const text = Deno.readTextFileSync(path);
  const spoiled = [text.replace("Says hello", "Says HELLO"), text.slice(0, -9), "", "{}"];
  for (const spoil of spoiled) {
    Deno.writeTextFileSync(path, spoil);
    const { registries } = new Scene(home, [registry]);
    assert.equal(registries.cachedEntry("hello"), undefined);
    assert.equal((await registries.find("hello", never))?.manifest.description, "Says hello");
    assert.equal(registry.asked.at(-1)?.headers.get("if-none-match"), null);
  }
  assert.equal(registry.asked.length, 1 + spoiled.length);
});

Deno.test("Registries refreshes expired entries in the background and reports changes", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(entries(hello()));
  const scene = new Scene(home, [registry], { entryMs: 0 });
  const { registries, changed, warned } = scene;
  const first = await registries.find("hello", never);
  registries.cachedEntry("hello");
  await until(() => registry.asked.length === 2);
  assert.equal(registry.asked[1]?.headers.get("if-none-match")?.startsWith('"sha256-'), true);
  assert.deepEqual(changed, []);
  registry.answer = entries(hello(TWO, { version: "1.1.0" }));
  assert.equal(
    registries.cachedEntry("hello")?.hash,
    first?.hash,
    "the cached entry is returned at once",
  );
  await until(() => changed.length === 1 || (registries.cachedEntry("hello"), false));
  assert.deepEqual(changed, ["hello"]);
  assert.equal(await scene.version("hello"), "1.1.0");
  // An unusable response changes nothing and is logged.
  registry.answer = () => json({ ...hello().hello.json, fqdn: "evil" });
  await until(() => warned.length > 0 || (registries.cachedEntry("hello"), false));
  assert.match(warned[0] ?? "", /fqdn is/);
  assert.equal(await scene.version("hello"), "1.1.0");
  registry.answer = entries({});
  await until(() => registries.cachedEntry("hello")?.gone === true);
  assert.equal(await scene.version("hello"), "1.1.0", "an entry in use stays usable");
  assert.equal(changed.length, 2);
  // An exact version never changes.
  registry.answer = entries(hello());
  await registries.find("hello@1.0.0", never);
  const { length } = registry.targets.filter((target) => target === "/hello@1.0.0");
  registries.cachedEntry("hello@1.0.0");
  await registries.refresh("hello", never);
  assert.equal(registry.targets.filter((target) => target === "/hello@1.0.0").length, length);
});

Deno.test("Registries refreshes entries and catalogs with timestamps in the future", async () => {
  using home = new Folder();
  await using one = new ScriptedRegistry(entries(hello()));
  await using two = new ScriptedRegistry(() => json({ items: [{ fqdn: "a", type: "deno" }] }));
  const clock = Date.now;
  try {
    Date.now = () => clock() + 400 * 86_400_000;
    const { registries } = new Scene(home, [one, two]);
    await registries.find("hello", never);
    await registries.refreshCatalog(never);
  } finally {
    Date.now = clock;
  }
  one.answer = entries({});
  two.answer = () => json({ items: [{ fqdn: "b", type: "deno" }] });
  const { registries } = new Scene(home, [one, two]);
  const names = () => registries.catalog().map(({ fqdn }) => fqdn);
  assert.deepEqual(names(), ["a"]);
  await until(() => registries.cachedEntry("hello")?.gone === true);
  await until(() => names().includes("b"));
});

Deno.test("Registries logs no warning for an unreachable default registry", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(entries(hello()));
  registry.stop();
  const { registries, warned } = new Scene(home, [registry], { isQuiet: true });
  await fails(registries.find("hello", never), "REGISTRY_OFFLINE", /Cannot reach the registry/);
  const [catalog] = await registries.refreshCatalog(never);
  assert.equal(catalog?.error?.code, "REGISTRY_OFFLINE");
  assert.deepEqual(warned, []);
});

Deno.test("Registries uses cached entries during an outage and fails at once for others", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(entries(hello()));
  const scene = new Scene(home, [registry], { restMs: 60_000, entryMs: 0 });
  const { registries, warned } = scene;
  const entry = await registries.find("hello", never);
  assert.ok(entry);
  registry.stop();
  await fails(registries.find("other", never), "REGISTRY_OFFLINE", /Cannot reach the registry/);
  const { fetched } = scene;
  for (let call = 0; call < 20; call++) {
    await fails(registries.find(`other${call}`, never), "REGISTRY_OFFLINE");
    await fails(registries.code(entry, never), "REGISTRY_OFFLINE");
    assert.equal(registries.cachedEntry("hello")?.offline, true);
    assert.equal((await registries.find("hello", never))?.hash, entry.hash);
  }
  assert.equal(scene.fetched, fetched, "no call waits for an unreachable registry");
  assert.equal(warned.length, 1, "an outage is logged once");
  assert.match(warned[0] ?? "", /Cannot reach .*; PML uses cached entries/);
  const later = new Scene(home, [registry], { restMs: 1, entryMs: 0 }).registries;
  await fails(later.code(entry, never), "REGISTRY_OFFLINE");
  registry.start();
  await until(() => later.cachedEntry("hello")?.offline === false);
  assert.equal(new TextDecoder().decode(await later.code(entry, never)), ONE);
});

Deno.test("Registries waits for a silent registry once and then sends one probe at a time", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(() => "silence");
  // Without a pause, the next caller after a failure probes the registry again.
  const { registries } = new Scene(home, [registry], { restMs: 0, lookMs: 150 });
  await fails(registries.find("hello", never), "REGISTRY_OFFLINE", /no answer within 150 ms/);
  const { length } = registry.asked;
  const names = ["hello", "a", "b", "c"];
  await Promise.all(names.map((name) => fails(registries.find(name, never), "REGISTRY_OFFLINE")));
  assert.equal(registry.asked.length, length + 1);
  // An aborted caller stops waiting.
  const abort = new AbortController();
  const waiting = registries.find("hello", { signal: abort.signal });
  abort.abort(new PmlError("CANCELLED", "over"));
  await fails(waiting, "CANCELLED");
  await fails(registries.find("hello", never), "REGISTRY_OFFLINE");
});

Deno.test("Registries probes an unreachable registry in the background without delaying callers", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry();
  registry.stop();
  const { registries } = new Scene(home, [registry], { restMs: 0 });
  await fails(registries.find("hello", never), "REGISTRY_OFFLINE");
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  registry.answer = () => ({ raw: () => held.then(() => {}) });
  registry.start();
  // A caller that probes the registry would wait for 20 s.
  await fails(registries.find("hello", never), "REGISTRY_OFFLINE");
  await fails(registries.find("other", never), "REGISTRY_OFFLINE");
  assert.equal((await registries.refreshCatalog(never))[0]?.error?.code, "REGISTRY_OFFLINE");
  assert.equal(registry.asked.length, 1);
  // The registry answers: the entry is cached although no caller waited for it.
  registry.answer = entries(hello());
  letGo();
  await until(() => registries.storedEntry("hello")?.offline === false);
  assert.equal((await registries.find("hello", never))?.manifest.version, "1.0.0");
});

Deno.test("Registries.kept() sends no request for an entry of any age", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(entries(hello()));
  const { registries } = new Scene(home, [registry], { entryMs: 0 });
  assert.equal(registries.storedEntry("hello"), undefined);
  const entry = await registries.find("hello", never);
  registry.asked.length = 0;
  assert.equal(registries.storedEntry("hello")?.hash, entry?.hash);
  // Background requests are sent after a turn of the event loop, so this lookup comes later.
  await registries.find("ghost", never);
  assert.deepEqual(registry.targets, ["/ghost"]);
});

Deno.test("Registries sends requests in order, and none for private, invalid or otherwise pinned names", async () => {
  using home = new Folder();
  await using company = new ScriptedRegistry(entries(hello(ONE)));
  await using open = new ScriptedRegistry(entries({
    ...hello(TWO, { version: "9.9.9" }),
    tool: { json: denoEntry("tool", TWO) },
    mine: { json: denoEntry("mine", TWO) },
  }));
  const pins: Record<string, { source: string }> = {};
  const scene = new Scene(home, [company, open], { own: ["mine"], pins });
  const { registries } = scene;
  assert.equal(await scene.version("hello"), "1.0.0");
  assert.deepEqual(open.asked, []);
  assert.equal(await scene.version("tool"), "1.0.0");
  assert.deepEqual(company.targets, ["/hello", "/tool"]);
  assert.equal(registries.cachedEntry("tool")?.source, open.url);
  assert.equal(await scene.version("mine"), undefined);
  assert.equal(await scene.version("nobody"), undefined);
  assert.equal(await scene.version("nobody"), undefined);
  assert.ok(![...company.targets, ...open.targets].includes("/mine"));
  const asked = open.targets.filter((target) => target === "/nobody");
  assert.equal(asked.length, 1, "a missing name is cached");
  // The company's registry is down: no other registry gets a name that was sent only to it.
  company.stop();
  const { length } = open.asked;
  await fails(registries.find("company-secret", never), "REGISTRY_OFFLINE");
  assert.equal(open.asked.length, length);
  // Another process also knows that the name is missing there.
  const later = new Scene(home, [company, open]).registries;
  assert.equal(later.cachedEntry("tool")?.source, open.url);
  company.start();
  pins.hello = { source: open.url };
  const pinned = new Scene(home, [company, open], { pins });
  assert.equal(await pinned.version("hello"), "9.9.9");
  const before = company.asked.length + open.asked.length;
  const ill = ["../x", "a/b", "a%2fb", "a?b", "A", "", "a".repeat(300), "a\0", "con", "nul.txt"];
  for (const name of [...ill, "__proto__", "hеllo", "hello.", "fs:../x", "fs:a/b", "hello@../1"]) {
    await fails(registries.find(name, never), "NAME_INVALID");
    await fails(() => registries.cachedEntry(name), "NAME_INVALID");
  }
  const odd = fc.string({ unit: "grapheme", maxLength: 80 });
  await fc.assert(fc.asyncProperty(odd, async (name) => {
    if (/^[a-z0-9][a-z0-9._-]*(:[a-z0-9][a-z0-9._-]*)?(@[\w.+-]+)?$/.test(name)) return;
    await fails(registries.find(name, never), "NAME_INVALID");
  }));
  assert.equal(company.asked.length + open.asked.length, before);
});

Deno.test("Registries uses the pinned version if a registry's newest one is older", async () => {
  using home = new Folder();
  const all = ["1.0.0", "1.1.0", "2.0.0"].map((version) => denoEntry("hello", ONE, { version }));
  let newest = all[0];
  let hasPinned = true;
  await using registry = new ScriptedRegistry(({ target }) => {
    const [, version] = target.split("@");
    const found = version === undefined ? newest : all.find((one) => one.version === version);
    return found === undefined || version === "1.1.0" && !hasPinned
      ? { status: 404, body: "{}" }
      : json(found, { etag: `"${found.version}"` });
  });
  const pin = { source: registry.url, version: "1.1.0" };
  const { registries } = new Scene(home, [registry], { pins: { hello: pin } });
  const version = async (name = "hello") =>
    (await registries.refresh(name, never))?.manifest.version;
  assert.equal(await version(), "1.1.0");
  assert.deepEqual(registry.targets, ["/hello", "/hello@1.1.0"]);
  assert.equal(registries.cachedEntry("hello")?.manifest.version, "1.1.0");
  assert.equal(await version("hello@1.0.0"), "1.0.0");
  newest = all[2];
  assert.equal(await version(), "2.0.0");
  [newest, hasPinned] = [all[0], false];
  assert.equal(await version(), "1.0.0");
});

Deno.test("Registries accepts only signed entries from a registry with a key, and marks older ones", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(entries(hello()));
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const pem = publicKey.export({ format: "pem", type: "spki" }).toString();
  const sign = (issued: string, version = "1.0.0") => {
    const entry = denoEntry("hello", ONE, { version });
    const key = privateKey.export({ format: "pem", type: "pkcs8" }).toString();
    return entries({
      hello: { json: signManifest(entry, { registry: registry.url, privateKey: key }, issued) },
    });
  };
  await new Scene(home, [registry]).registries.find("hello", never);
  const { registries } = new Scene(home, [registry], { publicKey: pem });
  // An entry that was cached before the key was configured is not used.
  assert.equal(registries.cachedEntry("hello"), undefined);
  await fails(registries.find("hello", never), "REGISTRY_BAD_RESPONSE", /is not signed/);
  registry.answer = sign("2026-02-01T00:00:00Z", "1.1.0");
  const foundEntry = await registries.find("hello", never);
  assert.match(foundEntry?.vouched ?? "", /^signed/);
  assert.equal(foundEntry?.older, false);
  registry.answer = sign("2026-01-01T00:00:00Z");
  assert.equal((await registries.refresh("hello", never))?.older, true);
  registry.answer = sign("2026-03-01T00:00:00Z", "1.2.0");
  assert.equal((await registries.refresh("hello", never))?.older, false);
  const wrong = new Scene(home, [registry], { publicKey: "SECRET" }).registries;
  await fails(wrong.find("hello", never), "CONFIG_INVALID");
});
