import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeIfPossible, writeFileWhole } from "./cache_files.ts";

Deno.test("writeFileWhole() writes a complete private file, and leaves no temporary file", async () => {
  const home = await mkdtemp(join(tmpdir(), "pml-kept-"));
  const path = join(home, "deep", "kept.json");
  writeFileWhole(path, "one");
  writeFileWhole(path, new TextEncoder().encode("two"));
  assert.equal(await readFile(path, "utf8"), "two");
  if (Deno.build.os !== "windows") assert.equal((Deno.statSync(path).mode ?? 0) & 0o777, 0o600);
  assert.deepEqual(await readdir(join(home, "deep")), ["kept.json"]);
  // The planted link is replaced, and its target is unchanged.
  const other = join(home, "deep", "other");
  await writeFile(other, "mine");
  await rm(path);
  await symlink(other, path);
  writeFileWhole(path, "three");
  assert.deepEqual([await readFile(other, "utf8"), await readFile(path, "utf8")], [
    "mine",
    "three",
  ]);
  const folder = join(home, "folder");
  await mkdir(join(folder, "full"), { recursive: true });
  assert.throws(() => writeFileWhole(folder, "three"));
  assert.deepEqual((await readdir(home)).toSorted(), ["deep", "folder"]);
  removeIfPossible(join(home, "none"));
  await rm(home, { recursive: true });
});
