import assert from "node:assert/strict";
import { never, Scene, until } from "./_scene_test.ts";
import { Folder, json, ScriptedRegistry } from "./_scripted_test.ts";

Deno.test("Registries caches the usable entries of a catalog for offline search", async () => {
  using home = new Folder();
  const page = (items: unknown[], next?: string) => json({ items, next_cursor: next ?? null });
  const tool = {
    name: "t",
    description: `\u001b[31mred\u202e ${"x".repeat(9_000)}`,
    inputSchema: {},
  };
  await using one = new ScriptedRegistry(({ target }) =>
    target.includes("cursor=2")
      ? page([{ fqdn: "b", type: "http", description: 7 }, { fqdn: "a", type: "deno" }])
      : page([
        {
          fqdn: "a",
          type: "stdio",
          version: "1.0",
          description: "\u200bA\n a",
          tools: ["a:x", tool],
        },
        ...[null, 7, "x", {}, { fqdn: "../x", type: "deno" }, { fqdn: "c", type: "exe" }],
        { fqdn: "d@1.0", type: "cloud", routing: "cloud", tools: ["a:stolen"] },
      ], "2")
  );
  await using two = new ScriptedRegistry(() =>
    page([{ fqdn: "a", type: "cloud" }, { fqdn: "e", type: "deno" }])
  );
  const scene = new Scene(home, [one, two]);
  assert.deepEqual(scene.registries.catalog(), [], "`catalog()` does not wait");
  await until(() => scene.registries.catalog().length === 4);
  const items = scene.registries.catalog();
  assert.equal(scene.registries.catalog(), items);
  const byName = new Map(items.map((item) => [item.fqdn, item]));
  assert.deepEqual([...byName.keys()].sort(), ["a", "b", "d", "e"]);
  const a = byName.get("a");
  assert.deepEqual([a?.kind, a?.source, a?.description, a?.version], [
    "stdio",
    one.url,
    "A  a",
    "1.0",
  ]);
  assert.deepEqual(a?.tools.map(({ name }) => name), ["x", "t"]);
  const text = a?.tools[1]?.definition?.description ?? "";
  assert.ok(text.length <= 2_000 && text.startsWith("[31mred"));
  assert.deepEqual(byName.get("d")?.tools, []);
  assert.equal(byName.get("b")?.description, "");
  one.stop();
  two.stop();
  const later = new Scene(home, [one, two]);
  assert.equal(JSON.stringify(later.registries.catalog()), JSON.stringify(items));
  const outcomes = await later.registries.refreshCatalog(never);
  assert.deepEqual(outcomes.map(({ error }) => error?.code), [
    "REGISTRY_OFFLINE",
    "REGISTRY_OFFLINE",
  ]);
  assert.equal(later.registries.catalog().length, 4);
  one.start();
  two.start();
  const [first] = await new Scene(home, [one, two]).registries.refreshCatalog(never);
  assert.deepEqual([first?.entries, first?.dropped], [3, 7]);
});

Deno.test("Registries downloads a catalog once for concurrent callers", async () => {
  using home = new Folder();
  await using registry = new ScriptedRegistry(() =>
    json({ items: [{ fqdn: "a", type: "deno" }], next_cursor: null })
  );
  const scene = new Scene(home, [registry]);
  const { registries } = scene;
  assert.deepEqual(registries.catalog(), []);
  const over = new AbortController();
  over.abort();
  const [outcomes, again, [given]] = await Promise.all([
    registries.refreshCatalog(never),
    registries.refreshCatalog(never),
    registries.refreshCatalog({ signal: over.signal }),
  ]);
  assert.deepEqual([outcomes[0]?.entries, again[0]?.entries], [1, 1]);
  assert.equal(given?.error?.code, "CANCELLED", "an aborted caller does not abort the download");
  assert.equal(registry.asked.length, 1);
  await registries.refreshCatalog(never);
  assert.equal(registry.asked.length, 2);
});

Deno.test("Registries limits endless and too large catalogs", async () => {
  using home = new Folder();
  let pages = 0;
  await using registry = new ScriptedRegistry(() =>
    json({ items: [{ fqdn: `n${pages}`, type: "deno" }], next_cursor: `${pages++}` })
  );
  const scene = new Scene(home, [registry]);
  const [endless] = await scene.registries.refreshCatalog(never);
  assert.equal(endless?.entries, 200);
  assert.match(scene.warned[0] ?? "", /no end: after 200 entries/);
  registry.answer = () => json({ items: [{ fqdn: "a", type: "deno" }], next_cursor: "same" });
  const before = registry.asked.length;
  assert.equal((await scene.registries.refreshCatalog(never))[0]?.entries, 1);
  assert.equal(registry.asked.length, before + 2);
  const many = JSON.stringify({
    items: Array.from({ length: 60_000 }, (_, n) => ({ fqdn: `n${n}`, type: "deno" })),
  });
  registry.answer = () => json(many);
  const [outcome] = await scene.registries.refreshCatalog(never);
  assert.equal(outcome?.entries, 50_000);
  const tools = Array.from(
    { length: 900 },
    (_, n) => ({ name: `t${n}`, description: "x".repeat(100) }),
  );
  registry.answer = () => json({ items: [{ fqdn: "big", type: "deno", tools }] });
  await scene.registries.refreshCatalog(never);
  assert.equal(scene.registries.catalog()[0]?.tools[0]?.definition, undefined);
  registry.answer = () => json("x".repeat(5 << 20));
  const [big] = await scene.registries.refreshCatalog(never);
  assert.equal(big?.error?.code, "REGISTRY_BAD_RESPONSE");
  assert.equal(scene.registries.catalog()[0]?.fqdn, "big", "the earlier catalog stays");
});

Deno.test("Registries.findEntryOf() downloads an old catalog again only for a missing capability", async () => {
  using home = new Folder();
  const tools = [{ name: "read", inputSchema: {} }];
  const items = [{ fqdn: "fs", type: "deno", tools }, { fqdn: "fs:count", type: "deno" }];
  await using registry = new ScriptedRegistry(() => json({ items }));
  const { registries } = new Scene(home, [registry]);
  await registries.refreshCatalog(never);
  const loads = registry.asked.length;
  const entryOf = async (action: string, name = "fs") =>
    await registries.findEntryOf({ name, action, version: undefined }, never);
  const { now } = Date;
  try {
    assert.equal(await entryOf("new"), "fs");
    assert.equal(registry.asked.length, loads, "the catalog was just downloaded");
    Date.now = () => now() + 60_000;
    assert.deepEqual(
      await Promise.all([entryOf("read"), entryOf("count"), entryOf("x", "other")]),
      ["fs", "fs:count", undefined],
    );
    assert.equal(
      registry.asked.length,
      loads,
      "listed tools and other namespaces cause no download",
    );
    items.push({ fqdn: "fs:new", type: "deno" });
    assert.equal(await entryOf("new"), "fs:new");
    assert.equal(registry.asked.length, loads + 1);
  } finally {
    Date.now = now;
  }
});
