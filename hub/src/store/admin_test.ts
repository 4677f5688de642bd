import assert from "node:assert/strict";
import { until } from "../../../tests/kit/wait.ts";
import { server, STORES } from "./_stores_test.ts";
import type { HubStore, OfferedVersion, Publication, PublishResult, Shares } from "./store.ts";

const SHARES: Shares = { versions: 4, names: 3, waiting: 2 };
const NEW = { state: "public", isNew: true };
const all = { after: "", words: [] as readonly string[], limit: 100 };

function publish(
  store: HubStore,
  offered: OfferedVersion,
  more: Partial<Publication> & { readonly by?: string } = {},
): Promise<PublishResult> {
  const { by = "acme", ...rest } = more;
  return store.admin.publish({
    ...{ offered, keyHash: `hash of ${by}`, isModerated: false, shares: SHARES, ...rest },
  });
}

async function keyed(store: HubStore, ...owners: readonly string[]): Promise<HubStore> {
  for (const owner of owners) {
    await store.admin.addKey({
      id: `k-${owner}`,
      owner,
      hash: `hash of ${owner}`,
      kind: "publisher",
    });
  }
  return store;
}

const found = async (store: HubStore) => (await store.page(all)).map(({ fqdn }) => fqdn);

for (const [kind, place] of Object.entries(STORES)) {
  Deno.test(`${kind}: a client key is valid until it is revoked, and not valid as a publisher key`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme");
    const hash = "hash of a client";
    await store.admin.addKey({ id: "k-client", owner: "acme", hash, kind: "client" });
    assert.equal(await store.admin.isClientKey(hash), true);
    assert.equal(await store.admin.isClientKey("hash of acme"), false);
    assert.equal(await store.admin.isClientKey("hash of nobody"), false);
    assert.deepEqual(await store.admin.takeTurn(hash, 60), { why: "key" });
    assert.deepEqual(await publish(store, server("acme", "1.0.0"), { by: "a client" }), {
      why: "key",
    });
    assert.deepEqual(await publish(store, server("acme", "1.0.0")), NEW);
    const change = { fqdn: "acme", version: "1.0.0", keyHash: hash };
    assert.deepEqual(await store.admin.yank(change, ""), { why: "key" });
    const kinds = (await store.admin.keys()).map(({ id, kind }) => `${id} ${kind}`);
    assert.deepEqual(kinds.sort(), ["k-acme publisher", "k-client client"]);
    await store.admin.revokeKey("k-client");
    assert.equal(await store.admin.isClientKey(hash), false);
  });

  Deno.test(`${kind}: a key publishes a version once, and a revoked key cannot publish`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme");
    const code = new TextEncoder().encode("1");
    const weather = { ...server("weather", "1.0.0"), code };
    assert.deepEqual(await publish(store, weather), NEW);
    assert.deepEqual(await publish(store, weather), { ...NEW, isNew: false });
    const other = server("weather", "1.0.0", { description: "another" });
    assert.deepEqual(await publish(store, other), { why: "exists" });
    assert.deepEqual(await publish(store, weather, { by: "nobody" }), { why: "key" });
    const entry = await store.entry("weather", undefined);
    assert.deepEqual([entry?.owner, entry?.code?.length], ["acme", 1]);
    assert.equal(await store.admin.takeTurn("hash of acme", 60), undefined);
    assert.equal(await store.admin.revokeKey("k-acme"), true);
    assert.equal(await store.admin.revokeKey("k-none"), false);
    assert.deepEqual(await store.admin.takeTurn("hash of acme", 60), { why: "key" });
    assert.deepEqual(await publish(store, server("weather", "2.0.0")), { why: "key" });
    const change = { fqdn: "weather", version: "1.0.0", keyHash: "hash of acme" };
    assert.deepEqual(await store.admin.yank(change, ""), { why: "key" });
    const [key] = await store.admin.keys();
    assert.ok(key?.revoked instanceof Date && key.revoked >= key.created);
    assert.deepEqual([key.id, key.owner], ["k-acme", "acme"]);
  });

  Deno.test(`${kind}: all hubs on a store count the changes of a key together`, async () => {
    await using there = await place();
    await using store = await there.open();
    await using other = await there.open();
    await keyed(store, "acme", "second");
    const start = performance.now();
    const taken = await Promise.all(
      Array.from(
        { length: 60 },
        (_, at) => [store, other][at % 2]?.admin.takeTurn("hash of acme", 10),
      ),
    );
    const grown = Math.floor((performance.now() - start) / 6_000);
    const made = taken.filter((refusal) => refusal === undefined).length;
    assert.ok(made >= 10 && made <= 10 + grown, `${made} of 60`);
    const refusal = taken.find((one) => one !== undefined);
    assert.ok(refusal?.why === "rate" && refusal.seconds >= 1 && refusal.seconds <= 6);
    assert.equal(await other.admin.takeTurn("hash of second", 10), undefined);
    // A turn comes back in time.
    await until(async () => await store.admin.takeTurn("hash of acme", 600) === undefined);
  });

  Deno.test(`${kind}: related tools are counted in the newest versions of capabilities`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    const calling = (fqdn: string, version: string, tools: readonly string[]) =>
      server(fqdn, version, { type: "capability", tools_used: tools });
    const none = await store.related("a:x", 5);
    await publish(store, calling("one:do", "1.0.0", ["a:x", "b:y", "c:z"]));
    await publish(store, calling("one:more", "1.0.0", ["a:x", "c:z", "c:z"]));
    await publish(store, calling("two:do", "1.0.0", ["a:x", "b:y"]), { by: "other" });
    await store.add([calling("three:do", "1.0.0", ["a:x"])]);
    const after = async (tool: string) =>
      (await store.related(tool, 5)).map((one) =>
        `${one.place} ${one.tool} ${one.organisations} ${one.capabilities}`
      );
    assert.deepEqual([none, await after("a:x")], [[], ["after b:y 2 2", "after c:z 1 1"]]);
    assert.deepEqual(await after("c:z"), ["before a:x 1 1", "before b:y 1 1"]);
    assert.equal((await store.related("a:x", 1)).length, 1);
    // An older version says nothing, a yanked one neither, and one that waits is not there yet.
    await publish(store, calling("one:do", "2.0.0", ["b:y", "a:x"]));
    assert.deepEqual(await after("a:x"), ["after b:y 1 1", "after c:z 1 1", "before b:y 1 1"]);
    await store.admin.yank({ fqdn: "one:do", version: "2.0.0" }, "");
    assert.deepEqual(await after("a:x"), ["after b:y 2 2", "after c:z 1 1"]);
    const waiting = calling("one:wait", "1.0.0", ["a:x", "d:w"]);
    await publish(store, waiting, { isModerated: true });
    assert.equal((await after("d:w")).length, 0);
    const [{ hash } = { hash: "" }] = await store.admin.waiting(5);
    assert.equal(
      await store.admin.decide({ fqdn: "one:wait", version: "1.0.0", hash }, true),
      "done",
    );
    assert.deepEqual(await after("d:w"), ["before a:x 1 1"]);
  });

  Deno.test(`${kind}: the owner of the longest namespace owns a name`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    await store.add([server("imported", "1.0.0")]);
    const names = ["weather", "fs:read", "com.acme.maps"];
    for (const name of names) assert.deepEqual(await publish(store, server(name, "1.0.0")), NEW);
    const by = "other";
    const tried = async (name: string) => await publish(store, server(name, "1.0.0"), { by });
    for (const name of ["weather", "weather:now", "weather.now", "fs:write", "com.acme.x:y"]) {
      const namespace = name.startsWith("com") ? "com.acme" : name.split(/[.:]/)[0];
      assert.deepEqual(await tried(name), { why: "foreign", namespace }, name);
    }
    assert.deepEqual(await tried("imported:x"), { why: "foreign", namespace: "imported" });
    assert.deepEqual(await tried("com.maps"), { why: "too_wide" });
    for (const name of ["vveather", "weathr", "weahter", "weatherr", "1mported", "com-acme"]) {
      const said = await tried(name);
      assert.equal("why" in said && said.why, "look_alike", name);
    }
    assert.deepEqual(await tried("fx"), NEW);
    assert.deepEqual(await tried("com.other.maps"), NEW);
    await store.admin.give({ namespace: "com.acme.x", owner: "other" });
    assert.deepEqual(await tried("com.acme.x:y"), NEW);
    await store.admin.give({ namespace: "weather", owner: "other" });
    const mine = await publish(store, server("weather", "2.0.0"));
    assert.deepEqual(mine, { why: "foreign", namespace: "weather" });
    const owned = (await store.admin.namespaces()).map(({ namespace, owner }) =>
      `${namespace} ${owner}`
    );
    assert.deepEqual(owned, [
      ...["com.acme acme", "com.acme.x other", "com.other other", "fs acme", "fx other"],
      ...["imported ", "weather other"],
    ]);
  });

  Deno.test(`${kind}: the owner of a name such as com does not own other names below it`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    const tried = async (name: string, by: string) =>
      await publish(store, server(name, "1.0.0"), { by });
    for (const name of ["com", "io:x"]) assert.deepEqual(await tried(name, "other"), NEW);
    for (const name of ["com.acme.maps", "io.acme.maps"]) {
      assert.deepEqual(await tried(name, "acme"), NEW, name);
    }
    for (const name of ["com.maps", "io.maps"]) {
      assert.deepEqual(await tried(name, "other"), { why: "too_wide" });
    }
    const namespace = "com";
    assert.deepEqual(await tried("com:x", "acme"), { why: "foreign", namespace });
    // What the operator gave away is of who got it.
    await store.admin.give({ namespace, owner: "other" });
    assert.deepEqual(await tried("com.second.maps", "acme"), { why: "foreign", namespace });
  });

  Deno.test(`${kind}: an imported name belongs to the operator, although com has an owner`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    assert.deepEqual(await publish(store, server("com", "1.0.0"), { by: "other" }), NEW);
    await store.add([server("com.acme.tool", "1.0.0")]);
    assert.deepEqual(await publish(store, server("com.acme.tool", "2.0.0")), {
      why: "foreign",
      namespace: "com.acme.tool",
    });
    assert.equal((await store.entry("com.acme.tool", undefined))?.version, "1.0.0");
  });

  Deno.test(`${kind}: each part of a name is compared with the names of other owners`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    for (const name of ["weather.eu", "com.orange.maps"]) {
      assert.deepEqual(await publish(store, server(name, "1.0.0")), NEW);
    }
    const alike = ["vveather.eu.now", "weathr.a.b.c:d", "com.0range.maps.now", "net.weather.a.b"];
    const tried = alike.map(async (name) =>
      await publish(store, server(name, "1.0.0"), { by: "other" })
    );
    const look = (namespace: string) => ({ why: "look_alike", namespace });
    assert.deepEqual(await Promise.all(tried), [
      ...[look("weather"), look("weather"), look("com.orange"), NEW],
    ]);
  });

  Deno.test(`${kind}: a yanked version is returned only by its exact number`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    for (const version of ["1.0.0", "1.1.0"]) await publish(store, server("weather", version));
    const at = (version: string) => ({ fqdn: "weather", version, keyHash: "hash of acme" });
    const tag = { fqdn: "weather", tag: "stable", keyHash: "hash of acme" };
    assert.equal(await store.admin.setTag(tag, "1.1.0"), undefined);
    assert.deepEqual(await store.admin.setTag(tag, "9.0.0"), { why: "missing" });
    assert.deepEqual(await store.admin.yank(at("9.0.0"), "x"), { why: "missing" });
    const foreign = { ...at("1.1.0"), keyHash: "hash of other" };
    assert.deepEqual(await store.admin.yank(foreign, "x"), {
      why: "foreign",
      namespace: "weather",
    });
    assert.equal(await store.admin.yank(at("1.1.0"), "leaks"), undefined);
    const newest = async (version?: string) => (await store.entry("weather", version))?.version;
    assert.deepEqual(
      [await newest(), await newest("stable"), await newest("1.1.0")],
      ["1.0.0", undefined, "1.1.0"],
    );
    assert.equal((await store.entry("weather", "1.1.0"))?.yanked, "leaks");
    assert.deepEqual(await store.versions("weather"), ["1.0.0"]);
    assert.deepEqual((await store.rows("weather")).map(({ version }) => version), ["1.0.0"]);
    assert.equal(await store.admin.yank({ fqdn: "weather", version: "1.0.0" }, ""), undefined);
    assert.deepEqual([await newest(), await found(store), await store.size()], [undefined, [], 0]);
    assert.deepEqual(await store.page({ ...all, words: ["weather"] }), []);
    assert.deepEqual(await publish(store, server("weather", "1.1.0", { description: "new" })), {
      why: "exists",
    });
    assert.equal(await store.admin.yank(at("1.1.0"), undefined), undefined);
    assert.deepEqual([await newest(), await newest("stable")], ["1.1.0", "1.1.0"]);
    assert.equal((await store.page({ ...all, words: ["weather"] })).length, 1);
    assert.deepEqual(await store.admin.tagsOf("weather"), { stable: "1.1.0" });
    assert.equal(await store.admin.setTag(tag, undefined), undefined);
    assert.deepEqual(await store.admin.setTag(tag, undefined), { why: "missing" });
    assert.deepEqual(await store.admin.tagsOf("weather"), {});
  });

  Deno.test(`${kind}: readers do not see a waiting version, and a decision needs its hash`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    const code = new TextEncoder().encode("export const secret = 1;");
    const weather = { ...server("weather", "1.0.0"), code };
    const isModerated = true;
    const waits = { state: "waiting", isNew: true };
    assert.deepEqual(await publish(store, weather, { isModerated }), waits);
    assert.deepEqual(await publish(store, weather, { isModerated }), { ...waits, isNew: false });
    const other = server("weather", "1.0.0", { description: "another" });
    assert.deepEqual(await publish(store, other, { isModerated }), { why: "exists" });
    assert.deepEqual([await found(store), await store.versions("weather")], [[], []]);
    assert.equal(await store.entry("weather", "1.0.0"), undefined);
    assert.deepEqual(await store.rows("weather"), []);
    // Nobody takes the name meanwhile.
    const taken = await publish(store, weather, { isModerated, by: "other" });
    assert.deepEqual(taken, { why: "foreign", namespace: "weather" });
    const [waiting] = await store.admin.waiting(10);
    assert.deepEqual([waiting?.fqdn, waiting?.owner, waiting?.code?.length], [
      "weather",
      "acme",
      24,
    ]);
    assert.deepEqual(waiting?.manifest, weather.manifest);
    const decided = { fqdn: "weather", version: "1.0.0", hash: waiting?.hash ?? "" };
    assert.equal(await store.admin.decide({ ...decided, hash: "sha256-0" }, true), "other");
    assert.equal(await store.admin.decide({ ...decided, version: "2.0.0" }, true), "missing");
    assert.equal(await store.admin.decide(decided, false), "done");
    assert.equal(await store.admin.decide(decided, true), "missing");
    // Who was rejected keeps nothing, not even the name.
    assert.deepEqual(await store.admin.namespaces(), []);
    assert.deepEqual(await publish(store, weather, { isModerated, by: "other" }), waits);
    assert.equal(await store.admin.decide(decided, true), "done");
    const entry = await store.entry("weather", undefined);
    assert.deepEqual([entry?.owner, entry?.code?.length], ["other", 24]);
    assert.deepEqual(await store.admin.waiting(10), []);
    await publish(store, server("weather", "2.0.0"), { isModerated, by: "other" });
    const [later] = await store.admin.waiting(10);
    await store.add([server("weather", "2.0.0", { description: "by the operator" })]);
    const two = { fqdn: "weather", version: "2.0.0", hash: later?.hash ?? "" };
    assert.equal(await store.admin.decide(two, true), "exists");
    assert.equal((await store.admin.waiting(10)).length, 1);
  });

  Deno.test(`${kind}: a waiting version is not published under a name that has another owner by now`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme", "other");
    for (const fqdn of ["weather", "weather.eu"]) {
      await publish(store, server(fqdn, "1.0.0"), { isModerated: true });
    }
    const waiting = await store.admin.waiting(10);
    assert.deepEqual(waiting.map(({ owner }) => owner), ["acme", "acme"]);
    await store.admin.give({ namespace: "weather", owner: "other" });
    for (const { fqdn, version, hash } of waiting) {
      assert.equal(await store.admin.decide({ fqdn, version, hash }, true), "foreign");
      assert.equal(await store.entry(fqdn, undefined), undefined);
      assert.equal(await store.admin.decide({ fqdn, version, hash }, false), "done");
    }
    const given = [{ namespace: "weather", owner: "other" }];
    assert.deepEqual(await store.admin.namespaces(), given);
  });

  Deno.test(`${kind}: an organisation cannot exceed its limits`, async () => {
    await using there = await place();
    await using store = await there.open();
    await keyed(store, "acme");
    const isModerated = true;
    for (const name of ["a", "b"]) {
      const said = await publish(store, server(name, "1.0.0"), { isModerated });
      assert.deepEqual(said, { state: "waiting", isNew: true });
    }
    const third = await publish(store, server("c", "1.0.0"), { isModerated });
    assert.deepEqual(third, { why: "full", share: "waiting" });
    for (const name of ["x:1", "x:2", "y"]) {
      assert.deepEqual(await publish(store, server(name, "1.0.0")), NEW);
    }
    assert.deepEqual(await publish(store, server("z", "1.0.0")), { why: "full", share: "names" });
    for (const version of ["1.1.0", "1.2.0", "1.3.0"]) {
      assert.deepEqual(await publish(store, server("y", version)), NEW);
    }
    const fifth = await publish(store, server("y", "2.0.0"));
    assert.deepEqual(fifth, { why: "full", share: "versions" });
  });

  Deno.test(`${kind}: if many publish one version at once, one succeeds`, async () => {
    await using there = await place();
    const stores = await Promise.all([1, 2, 3].map(() => there.open()));
    await keyed(stores[0]!, "acme");
    const said = await Promise.all(
      Array.from(
        { length: 12 },
        (_, at) =>
          publish(stores[at % 3]!, server("weather", "1.0.0", { description: `text ${at}` })),
      ),
    );
    const [store] = stores;
    const isNew = said.filter((one) => "isNew" in one && one.isNew);
    assert.equal(isNew.length, 1);
    assert.equal(said.filter((one) => "why" in one && one.why === "exists").length, 11);
    const at = said.findIndex((one) => "isNew" in one);
    assert.equal((await store!.entry("weather", "1.0.0"))?.manifest.description, `text ${at}`);
    for (const one of stores) await one[Symbol.asyncDispose]();
  });
}
