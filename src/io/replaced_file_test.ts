import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeIfAny, replaceFile } from "./replaced_file.ts";

Deno.test("replaceFile() puts a whole file in place, for this person alone, and leaves no other", async () => {
  const home = await mkdtemp(join(tmpdir(), "pml-replaced-"));
  const path = join(home, "deep", "kept.json");
  replaceFile(path, "one");
  replaceFile(path, new TextEncoder().encode("two"));
  assert.equal(await readFile(path, "utf8"), "two");
  if (Deno.build.os !== "windows") assert.equal((Deno.statSync(path).mode ?? 0) & 0o777, 0o600);
  assert.deepEqual(await readdir(join(home, "deep")), ["kept.json"]);
  const folder = join(home, "folder");
  await mkdir(join(folder, "full"), { recursive: true });
  assert.throws(() => replaceFile(folder, "three"));
  assert.deepEqual((await readdir(home)).toSorted(), ["deep", "folder"]);
  removeIfAny(join(home, "none"));
  await rm(home, { recursive: true });
});
