import assert from "node:assert/strict";
import { join } from "node:path";
import { race } from "./approvals_child_test.ts";
import { hashOf, TrustStore } from "./trust.ts";

const HASH = "a".repeat(64);
const OTHER = "b".repeat(64);

async function fixture() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const file = join(root, ".pml.json");
  await Deno.writeTextFile(file, "{}");
  const home = join(root, "home");
  const warnings: string[] = [];
  const store = new TrustStore(home, { warn: (message) => warnings.push(message) });
  const kept = async () => {
    const names = (await Array.fromAsync(Deno.readDir(join(home, "trust")))).map((at) => at.name);
    return join(home, "trust", names.find((name) => name.endsWith(".json")) ?? "none");
  };
  return {
    root,
    file,
    home,
    warnings,
    store,
    kept,
    [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }),
  };
}

Deno.test("isTrusted() requires the trusted path and hash", async () => {
  await using at = await fixture();
  assert.equal(await at.store.isTrusted(at.file, HASH), false);
  await at.store.trust({ path: at.file, hash: HASH, servers: { db: "sha256-1" } });
  assert.equal(await at.store.isTrusted(at.file, HASH), true);
  assert.equal(await at.store.isTrusted(at.file, OTHER), false);
  const record = await at.store.record(at.file);
  assert.deepEqual({ ...record?.servers }, { db: "sha256-1" });
});

Deno.test("isTrusted() returns false for subfolders and for links to a trusted file", async () => {
  await using at = await fixture();
  await at.store.trust({ path: at.file, hash: HASH, servers: {} });
  const nested = join(at.root, "nested");
  await Deno.mkdir(nested);
  const link = join(nested, ".pml.json");
  await Deno.symlink(at.file, link);
  assert.equal(await at.store.isTrusted(link, HASH), false);
  // Even a record for the link's own path is not used, because the real file is another one.
  await at.store.trust({ path: link, hash: HASH, servers: {} });
  assert.equal(await at.store.isTrusted(link, HASH), false);
  await Deno.symlink(at.root, join(nested, "up"));
  assert.equal(await at.store.isTrusted(join(nested, "up", ".pml.json"), HASH), false);
  const missing = join(nested, "missing.json");
  await at.store.trust({ path: missing, hash: HASH, servers: {} });
  assert.equal(await at.store.isTrusted(missing, HASH), false);
});

Deno.test("approve() stores approved code without changing the trust in the file", async () => {
  await using at = await fixture();
  const pin = (code: string) =>
    at.store.approve(at.file, (before) => ({ constructor: code, ...before }));
  assert.deepEqual(await pin("sha256-1"), { constructor: "sha256-1" });
  assert.equal((await pin("sha256-2")).constructor, "sha256-1");
  for (const hash of ["", HASH]) assert.equal(await at.store.isTrusted(at.file, hash), false);
  await at.store.trust({ path: at.file, hash: HASH, servers: {} });
  await at.store.approve(at.file, (before) => ({ ...before, db: "sha256-3" }));
  assert.equal(await at.store.isTrusted(at.file, HASH), true);
  assert.deepEqual((await at.store.record(at.file))?.servers, { db: "sha256-3" });
});

Deno.test("move() transfers the trust only from trusted bytes", async () => {
  await using at = await fixture();
  await at.store.move(at.file, { from: HASH, to: [OTHER] });
  assert.equal(await at.store.record(at.file), undefined);
  await at.store.trust({ path: at.file, hash: HASH, servers: { db: "kept" } });
  await at.store.move(at.file, { from: OTHER, to: ["c".repeat(64)] });
  const trusted = async () => [
    await at.store.isTrusted(at.file, HASH),
    await at.store.isTrusted(at.file, OTHER),
  ];
  assert.deepEqual(await trusted(), [true, false]);
  await at.store.move(at.file, { from: HASH, to: [HASH, OTHER] });
  assert.deepEqual(await trusted(), [true, true]);
  await at.store.move(at.file, { from: OTHER, to: [OTHER] });
  assert.deepEqual(await trusted(), [false, true]);
  assert.equal((await at.store.record(at.file))?.servers.db, "kept");
});

Deno.test("the lines of an edit by PML are not new in the next question, and other lines are", async () => {
  await using at = await fixture();
  let present = { hash: HASH, lines: ["first", "gone", "environment"] };
  const store = new TrustStore(at.home, { warn: assert.fail }, () => Promise.resolve(present));
  const shown = async () => (await store.record(at.file))?.shown;
  const write = (lines: readonly string[], hash = OTHER) => async () => {
    present = { hash, lines: [...lines] };
    await Promise.resolve();
  };
  const trusted = { path: at.file, hash: HASH, servers: {}, shown: ["first", "gone", "code"] };
  await store.trust(trusted);
  // "environment" is new since the answer, and no part of the edit.
  await store.whileWriting(
    at.file,
    { from: HASH, to: OTHER },
    write(["first", "added", "environment"]),
  );
  assert.deepEqual(await shown(), ["first", "code", "added"]);
  assert.equal(await store.isTrusted(at.file, OTHER), true);
  // Another program wrote before or after PML.
  for (const [before, after] of [["c".repeat(64), OTHER], [HASH, "c".repeat(64)]] as const) {
    await store.trust(trusted);
    present = { hash: before, lines: ["first"] };
    await store.whileWriting(at.file, { from: HASH, to: OTHER }, write(["first", "bad"], after));
    assert.deepEqual(await shown(), trusted.shown);
    assert.equal(await store.isTrusted(at.file, OTHER), true);
  }
  // An untrusted file stays untrusted.
  await store.trust(trusted);
  await store.whileWriting(at.file, { from: OTHER, to: HASH }, write(["first"], HASH));
  assert.deepEqual(await shown(), trusted.shown);
});

Deno.test("a corrupt record, one of another path, or a link trusts nothing and causes a warning", async () => {
  await using at = await fixture();
  await at.store.trust({ path: at.file, hash: HASH, servers: {} });
  const kept = await at.kept();
  const good = await Deno.readTextFile(kept);
  const bad = [
    "",
    "{",
    "[]",
    good.slice(0, -3),
    good.replace(at.file, "/else/.pml.json"),
    good.replace(`"${HASH}"`, "1"),
    good.replace('"servers": {}', '"servers": {"db": {}}'),
    good.replace('"servers": {}', '"servers": []'),
  ];
  for (const text of bad) {
    await Deno.writeTextFile(kept, text);
    at.warnings.length = 0;
    assert.equal(await at.store.isTrusted(at.file, HASH), false, text);
    assert.match(at.warnings.join(), /^Cannot use /, text);
  }
  await Deno.remove(kept);
  await Deno.writeTextFile(join(at.root, "planted"), good);
  await Deno.symlink(join(at.root, "planted"), kept);
  assert.equal(await at.store.isTrusted(at.file, HASH), false);
});

Deno.test("only this user can read trust records", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  await Deno.mkdir(join(at.home, "trust"), { recursive: true });
  await Deno.chmod(join(at.home, "trust"), 0o755);
  await at.store.trust({ path: at.file, hash: HASH, servers: {} });
  const modes = [join(at.home, "trust"), await at.kept(), `${await at.kept()}.lock`].map((path) =>
    (Deno.statSync(path).mode ?? 0) & 0o777
  );
  assert.deepEqual(modes, [0o700, 0o600, 0o600]);
});

Deno.test("a planted link in the home is not written through", async () => {
  await using at = await fixture();
  await at.store.trust({ path: at.file, hash: HASH, servers: {} });
  const outside = join(at.root, "outside");
  await Deno.writeTextFile(outside, "mine");
  const lock = `${await at.kept()}.lock`;
  await Deno.remove(lock);
  await Deno.symlink(outside, lock);
  await assert.rejects(at.store.move(at.file, { from: HASH, to: [] }), /not a regular file/);
  await Deno.rename(join(at.home, "trust"), join(at.root, "moved"));
  await Deno.symlink(join(at.root, "moved"), join(at.home, "trust"));
  await assert.rejects(at.store.approve(at.file, () => ({ a: "b" })), /not a folder/);
  assert.equal(await Deno.readTextFile(outside), "mine");
});

Deno.test("four processes with fifty writes each lose no write", async () => {
  await using at = await fixture();
  await race(["a", "b", "c", "d"].map((name) => ["pin", at.home, at.file, name, "50"]));
  const servers = (await at.store.record(at.file))?.servers ?? {};
  assert.equal(Object.keys(servers).length, 200);
});

Deno.test("hashOf() returns SHA-256 in hex", () => {
  assert.match(hashOf(new TextEncoder().encode("")), /^e3b0c44298fc1c149afbf4c8996fb924/);
});
