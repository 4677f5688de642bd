import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { PmlError, searchText } from "@casys/pml/registry";
import { until } from "../../../tests/kit/wait.ts";
import { openDatabase } from "./_database.ts";
import { MIGRATIONS } from "./_migrations.ts";
import { shapeOf } from "./namespace.ts";
import { backup, openBackup, restore } from "./backup.ts";
import { DATABASE, openEmbedded } from "./embedded.ts";
import { folder, server, STORES } from "./_stores_test.ts";

const code = (text: string) => new TextEncoder().encode(text);
const find = { after: "", words: [] as readonly string[], limit: 100 };

async function refused(work: Promise<unknown>, says: RegExp): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof PmlError, `${error}`);
    assert.match(error.message, says);
    assert.ok((error.hint ?? "").length > 10);
    return true;
  });
}

for (const [kind, place] of Object.entries(STORES)) {
  Deno.test(`${kind}: an added version never changes, and exists after the store is opened again`, async () => {
    await using there = await place();
    const weather = { ...server("weather", "1.0.0", { type: "deno" }), code: code("1") };
    {
      await using store = await there.open();
      assert.deepEqual(await store.add([weather, server("fs:read", "0.1.0")]), ["added", "added"]);
      const others = [
        weather,
        { ...weather, code: code("2") },
        server("weather", "1.0.0"),
        server("fs:read", "0.1.0", { description: "another" }),
      ];
      const lines = ["same", "refused", "refused", "refused"];
      assert.deepEqual(await store.add(others), lines);
    }
    await using store = await there.open();
    const entry = await store.entry("weather", "1.0.0");
    assert.equal(new TextDecoder().decode(entry?.code), "1");
    assert.deepEqual(entry?.manifest, weather.manifest);
    assert.equal(JSON.stringify(entry?.manifest), JSON.stringify(weather.manifest));
    assert.equal((await store.entry("fs:read", undefined))?.code, undefined);
    assert.equal(await store.entry("nobody", undefined), undefined);
    assert.equal(await store.size(), 2);
  });

  Deno.test(`${kind}: returns the newest version without pre-releases, or the version of a tag`, async () => {
    await using there = await place();
    await using store = await there.open();
    const versions = ["1.9.0", "1.10.0", "2.0.0-rc.1"];
    await store.add(versions.map((version) => server("weather", version)));
    assert.deepEqual(await store.versions("weather"), ["2.0.0-rc.1", "1.10.0", "1.9.0"]);
    const at = async (version?: string) => (await store.entry("weather", version))?.version;
    assert.equal(await at(), "1.10.0");
    await store.tag("weather", { beta: "2.0.0-rc.1", gone: "9.9.9", latest: "1.9.0" });
    assert.deepEqual(
      [await at(), await at("latest"), await at("beta"), await at("gone"), await at("1.10.0")],
      ["1.9.0", "1.9.0", "2.0.0-rc.1", undefined, "1.10.0"],
    );
    assert.deepEqual((await store.page(find)).map(({ version }) => version), ["1.9.0"]);
    await store.tag("weather", {});
    assert.equal(await at(), "1.10.0");
  });

  Deno.test(`${kind}: a page has the entries with all words, by the same rule as a folder`, async () => {
    await using there = await place();
    await using store = await there.open();
    const names = ["apple", "fs:read_json", "fs:list", "ümlaut", "a-b", 'quo"te', "a.b*c"];
    const entries = names.map((name, at) =>
      server(name, "1.0.0", { description: `Größe ${"x".repeat(at)} AND ${name} %_ 'q'` })
    );
    await store.add(entries);
    const sorted = entries.toSorted((a, b) => a.fqdn < b.fqdn ? -1 : 1);
    const words = ["größe", "a", "fs", '"', "and", "read_json", "%", "'", "look_up", "xx", "b*c"];
    const word = fc.oneof(fc.constantFrom(...words), fc.string({ minLength: 1, maxLength: 4 }));
    const property = fc.asyncProperty(fc.array(word, { maxLength: 3 }), async (asked) => {
      const lower = asked.map((one) => one.toLowerCase()).filter((one) => !/\0/.test(one));
      const wanted = sorted.filter((one) => lower.every((part) => searchText(one).includes(part)));
      const found = await store.page({ after: "", words: lower, limit: 100 });
      assert.deepEqual(found.map(({ fqdn }) => fqdn), wanted.map(({ fqdn }) => fqdn));
    });
    await fc.assert(property, { numRuns: 200, seed: 7 });
    const two = await store.page({ after: "apple", words: [], limit: 2 });
    assert.deepEqual(two.map(({ fqdn }) => fqdn), ["fs:list", "fs:read_json", 'quo"te']);
  });

  Deno.test(`${kind}: the latest additions come first, by the newest version of each name`, async () => {
    await using there = await place();
    await using store = await there.open();
    const offers = [
      server("weather", "1.0.0"),
      server("fs:read", "0.1.0"),
      server("maps", "2.0.0"),
      server("weather", "1.1.0"),
      server("maps", "1.0.0"),
    ];
    const before = Date.now();
    for (const offer of offers) {
      const last = Date.now();
      await store.add([offer]);
      await until(() => Date.now() > last);
    }
    const latest = async (limit: number) =>
      (await store.latest(limit)).map(({ fqdn, version }) => `${fqdn}@${version}`);
    assert.deepEqual(await latest(9), ["weather@1.1.0", "maps@2.0.0", "fs:read@0.1.0"]);
    assert.deepEqual(await latest(2), ["weather@1.1.0", "maps@2.0.0"]);
    const dates = await store.dates("weather");
    assert.deepEqual([...dates.keys()].sort(), ["1.0.0", "1.1.0"]);
    const [first = 0, second = 0] = [dates.get("1.0.0"), dates.get("1.1.0")].map(Number);
    assert.ok(before <= first && first < second && second <= Date.now());
    assert.equal((await store.dates("nobody")).size, 0);
  });

  Deno.test(`${kind}: the view shows how a server is started and where it runs`, async () => {
    await using there = await place();
    await using store = await there.open();
    const tavily = { type: "cloud", proxy_to: "https://t.example.com/mcp", routing: "cloud" };
    await store.add([
      server("weather", "1.0.0"),
      server("tavily", "2.0.0", { ...tavily, install: undefined, description: undefined }),
      server("fs:read", "0.1.0", { type: "deno" }),
    ]);
    await store.tag("weather", { stable: "1.0.0", best: "1.0.0" });
    assert.deepEqual(await store.rows("weather"), [{
      ...{ record_type: "mcp-server", fqdn: "weather", type: "stdio", routing: "local" },
      ...{ description: "Does weather", install_command: "npx" },
      ...{ install_args: '["-y","weather@1.0.0"]', proxy_to: null, env_required: '["A_KEY"]' },
      ...{ warnings: '["slow"]', version: "1.0.0", version_tag: '["best","stable"]' },
    }]);
    const [cloud] = await store.rows("tavily");
    assert.deepEqual([cloud?.proxy_to, cloud?.install_command], [tavily.proxy_to, null]);
    assert.equal((await store.rows("fs:read"))[0]?.record_type, "capability");
    assert.deepEqual(await store.cloudNames(10), ["tavily"]);
  });
}

Deno.test("openDatabase() assigns the entries of an older hub to the operator", async () => {
  await using place = await folder();
  const file = join(place.path, DATABASE);
  {
    using db = openDatabase(file, MIGRATIONS.slice(0, 1));
    const add = db.prepare(`INSERT INTO servers (fqdn, version, type, routing, manifest, created)
      VALUES (?, '1.0.0', 'stdio', 'local', '{"description":"old"}', '2026-01-01T00:00:00Z')`);
    for (const name of ["weather", "com.acme.maps"]) add.run(name);
    db.exec("INSERT INTO newest (fqdn, version, words) VALUES ('weather', '1.0.0', 'weather old')");
  }
  await using store = await openEmbedded(place.path);
  assert.deepEqual(await store.admin.namespaces(), [
    { namespace: "com.acme.maps", owner: "" },
    { namespace: "weather", owner: "" },
  ]);
  const entry = await store.entry("weather", undefined);
  assert.deepEqual([entry?.owner, entry?.yanked], [undefined, undefined]);
  assert.equal((await store.page({ ...find, words: ["old"] })).length, 1);
  using db = new DatabaseSync(file);
  const rows = db.prepare("SELECT namespace, shape FROM namespaces").all();
  for (const { namespace, shape } of rows) assert.equal(shape, shapeOf(String(namespace)));
});

Deno.test("openEmbedded() refuses files of a newer hub, other files, and links", async () => {
  await using place = await folder();
  const file = join(place.path, DATABASE);
  await (await openEmbedded(place.path))[Symbol.asyncDispose]();
  {
    using db = new DatabaseSync(file);
    db.exec("INSERT INTO schema_versions (version, applied) VALUES (99, '')");
  }
  await refused(
    openEmbedded(place.path),
    /its tables have version 99, and .*supports only \d+/,
  );
  await using other = await folder();
  {
    using db = new DatabaseSync(join(other.path, DATABASE));
    db.exec("CREATE TABLE mine (a)");
  }
  await refused(openEmbedded(other.path), /not the database of/);
  await using broken = await folder();
  await Deno.writeTextFile(join(broken.path, DATABASE), "x".repeat(5_000));
  await refused(openEmbedded(broken.path), /not a database/);
  await using linking = await folder();
  await Deno.symlink(file, join(linking.path, DATABASE));
  await refused(openEmbedded(linking.path), /not a regular file/);
  if (Deno.build.os !== "windows") {
    assert.equal((await Deno.stat(file)).mode! & 0o777, 0o600);
  }
});

Deno.test("openDatabase() runs each migration in one transaction and keeps the data", async () => {
  await using place = await folder();
  const file = join(place.path, DATABASE);
  {
    await using store = await openEmbedded(place.path);
    await store.add([server("weather", "1.0.0")]);
  }
  const half = "CREATE TABLE more (a); INSERT INTO absent VALUES (1)";
  assert.throws(() => openDatabase(file, [...MIGRATIONS, half]), /no such table: absent/);
  openDatabase(file).close();
  const step = "ALTER TABLE servers ADD COLUMN stars TEXT";
  for (const _ of [1, 2]) {
    using db = openDatabase(file, [...MIGRATIONS, step]);
    const rows = db.prepare("SELECT fqdn, stars FROM servers").all();
    assert.deepEqual(rows.map((row) => ({ ...row })), [{ fqdn: "weather", stars: null }]);
  }
  const newer = `its tables have version ${MIGRATIONS.length + 1}, and .*supports only`;
  await refused(openEmbedded(place.path), new RegExp(newer));
});

Deno.test("A backup made while a hub writes is restored whole, and overwrites nothing", async () => {
  await using place = await folder();
  await using target = await folder();
  const file = join(place.path, "hub.backup");
  await using store = await openEmbedded(place.path);
  await store.add([{ ...server("weather", "1.0.0"), code: code("1") }]);
  await backup(place.path, file);
  await store.add([server("later", "1.0.0")]);
  await refused(backup(place.path, file), /already exists/);
  await restore(target.path, file);
  {
    await using back = await openEmbedded(target.path);
    assert.equal(await back.size(), 1);
    assert.equal((await back.entry("weather", undefined))?.code?.length, 1);
    assert.deepEqual((await back.page({ ...find, words: ["weather"] })).length, 1);
    assert.deepEqual(await back.add([server("new", "1.0.0")]), ["added"]);
  }
  await refused(restore(target.path, file), /already contains a database/);
  const left = [...Deno.readDirSync(target.path)].map(({ name }) => name);
  assert.deepEqual(left, [DATABASE]);
  const bytes = await Deno.readFile(file);
  // Cut short, changed in the middle, something else, and not there at all.
  await Deno.writeFile(join(place.path, "cut"), bytes.subarray(0, bytes.length - 8_192));
  await Deno.writeFile(join(place.path, "odd"), bytes.map((byte, at) => at > 9_000 ? 255 : byte));
  await Deno.writeTextFile(join(place.path, "text"), "hello");
  await using fresh = await folder();
  for (const name of ["cut", "odd", "text", "missing"]) {
    await refused(restore(fresh.path, join(place.path, name)), /Cannot (open|restore)/);
    assert.deepEqual([...Deno.readDirSync(fresh.path)], [], name);
  }
  await refused(backup(fresh.path, join(place.path, "nothing")), /contains no database/);
});

/** What somebody may do to a backup that is a whole file of SQLite. */
const CHANGES = {
  "no manifest": "UPDATE servers SET manifest = 'null'",
  "another name in it": "UPDATE servers SET manifest = replace(manifest, 'weather', 'maps')",
  "another version in it": "UPDATE servers SET manifest = replace(manifest, '1.0.0', '1.0.1')",
  "a name that is none":
    "UPDATE servers SET fqdn = '../x', manifest = replace(manifest, 'weather', '../x')",
  "the name of a capability":
    "UPDATE servers SET fqdn = 'a:b', manifest = replace(manifest, 'weather', 'a:b')",
  "a type that it has not": "UPDATE servers SET type = 'http'",
  "no time": "UPDATE servers SET created = 'never'",
  "code that is not there": "DELETE FROM blobs",
  "other code under its hash": "UPDATE blobs SET bytes = x'00'",
  "what waits under another name":
    `INSERT INTO waiting (fqdn, version, manifest, hash, created, owner)
    SELECT 'maps', version, manifest, '', created, '' FROM servers`,
  "a trigger": `CREATE TRIGGER again AFTER UPDATE ON keys BEGIN
    INSERT INTO keys SELECT 'x', owner, hash, created, NULL FROM keys; END`,
  "another view": "DROP VIEW pml_registry; CREATE VIEW pml_registry AS SELECT * FROM keys",
};

Deno.test("a backup with content that no hub writes is not restored", async () => {
  await using place = await folder();
  const file = join(place.path, "hub.backup");
  {
    await using store = await openEmbedded(place.path);
    await store.add([{ ...server("weather", "1.0.0"), code: code("1") }]);
    await backup(place.path, file);
  }
  const bytes = await Deno.readFile(file);
  await using fresh = await folder();
  for (const [what, sql] of Object.entries(CHANGES)) {
    const odd = join(place.path, "odd");
    await Deno.writeFile(odd, bytes);
    {
      using db = new DatabaseSync(odd, { enableForeignKeyConstraints: false });
      db.exec(sql);
    }
    await refused(restore(fresh.path, odd), /Cannot restore .*not a complete backup/);
    await refused(openBackup(odd), /Cannot restore .*not a complete backup/);
    assert.deepEqual([...Deno.readDirSync(fresh.path)], [], what);
  }
});
