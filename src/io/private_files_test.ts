import assert from "node:assert/strict";
import { join } from "node:path";
import { readPlain, removeLeftovers, withLock, writeWhole } from "./private_files.ts";

const BYTES = new TextEncoder().encode("new");

async function fixture() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const path = join(root, "file");
  return { root, path, [Symbol.asyncDispose]: () => Deno.remove(root, { recursive: true }) };
}

Deno.test("readPlain() returns undefined for a missing file", async () => {
  await using at = await fixture();
  assert.equal(readPlain(at.path), undefined);
  assert.equal(readPlain(join(at.path, "below")), undefined);
});

Deno.test("readPlain() refuses a link, a folder and a pipe", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  await Deno.symlink("/etc/hosts", join(at.root, "link"));
  await Deno.mkdir(join(at.root, "folder"));
  const result = new Deno.Command("mkfifo", { args: [join(at.root, "pipe")] }).outputSync();
  assert.ok(result.success);
  for (const name of ["link", "folder", "pipe"]) {
    assert.throws(() => readPlain(join(at.root, name)), /not a regular file/, name);
  }
});

Deno.test("readPlain() refuses a link that appears between the check and the opening", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  await Deno.writeTextFile(at.path, "mine");
  const { openSync } = Deno;
  try {
    Deno.openSync = (path, options) => {
      Deno.removeSync(at.path);
      Deno.symlinkSync("/etc/hosts", at.path);
      return openSync(path, options);
    };
    assert.throws(() => readPlain(at.path), /was replaced/);
  } finally {
    Object.assign(Deno, { openSync });
  }
});

Deno.test("writeWhole() syncs the bytes before the rename, and the folder after it", async () => {
  if (Deno.build.os === "windows") return;
  await using at = await fixture();
  const order: string[] = [];
  const { rename } = Deno;
  const { sync } = Deno.FsFile.prototype;
  try {
    Deno.FsFile.prototype.sync = async function () {
      order.push("sync");
      await sync.call(this);
    };
    Deno.rename = async (from, to) => {
      order.push("rename");
      await rename(from, to);
    };
    await writeWhole(at.path, { bytes: BYTES, mode: 0o600 });
  } finally {
    Object.assign(Deno, { rename });
    Deno.FsFile.prototype.sync = sync;
  }
  assert.deepEqual(order, ["sync", "rename", "sync"]);
  assert.deepEqual([...Deno.readDirSync(at.root)].map(({ name }) => name), ["file"]);
});

Deno.test("writeWhole() replaces a link, not its target", async () => {
  await using at = await fixture();
  const other = join(at.root, "other");
  await Deno.writeTextFile(other, "mine");
  await Deno.symlink(other, at.path);
  await writeWhole(at.path, { bytes: BYTES, mode: 0o600 });
  assert.deepEqual([await Deno.readTextFile(other), await Deno.readTextFile(at.path)], [
    "mine",
    "new",
  ]);
});

Deno.test("removeLeftovers() removes the files of a killed writer, and no files with similar names", async () => {
  await using at = await fixture();
  const names = ["file", "file.0123456789abcdef.pml-tmp", "file.tmp", "other.01.pml-tmp"];
  for (const name of names) await Deno.writeTextFile(join(at.root, name), "");
  await removeLeftovers(at.path);
  const left = [...Deno.readDirSync(at.root)].map(({ name }) => name).sort();
  assert.deepEqual(left, ["file", "file.tmp", "other.01.pml-tmp"]);
});

Deno.test("withLock() runs one work at a time, and releases the lock after a failure", async () => {
  await using at = await fixture();
  const lock = join(at.root, "home", "lock");
  let inside = 0;
  await Promise.all(Array.from({ length: 5 }, () =>
    withLock(lock, async () => {
      inside += 1;
      await Deno.stat(at.root);
      assert.equal(inside, 1);
      inside -= 1;
    })));
  await assert.rejects(withLock(lock, () => Promise.reject(new Error("failed"))), /failed/);
  assert.equal(await withLock(lock, () => Promise.resolve("again")), "again");
});
