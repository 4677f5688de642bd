import assert from "node:assert/strict";
import { join } from "node:path";
import { JournalFile, pruneJournal } from "./_journal_file.ts";

Deno.test("create() refuses a name that is taken, and follows no link", () => {
  const folder = Deno.makeTempDirSync();
  const path = join(folder, "file");
  for (const target of [join(folder, "missing"), join(folder, "present")]) {
    if (target.endsWith("present")) Deno.writeTextFileSync(target, "kept");
    Deno.symlinkSync(target, path);
    assert.throws(() => JournalFile.create(path), Deno.errors.AlreadyExists);
    Deno.removeSync(path);
  }
  assert.deepEqual([...Deno.readDirSync(folder)].map(({ name }) => name), ["present"]);
  assert.equal(Deno.readTextFileSync(join(folder, "present")), "kept");
  Deno.removeSync(folder, { recursive: true });
});

Deno.test("checkPlace() throws when another file has the path", () => {
  const folder = Deno.makeTempDirSync();
  const path = join(folder, "file");
  const file = JournalFile.create(path);
  file.append(new TextEncoder().encode("text"));
  file.checkPlace();
  Deno.renameSync(path, join(folder, "away"));
  assert.throws(() => file.checkPlace());
  Deno.writeTextFileSync(path, "text");
  assert.throws(() => file.checkPlace(), /no longer/);
  Deno.removeSync(path);
  Deno.linkSync(join(folder, "away"), path);
  file.checkPlace();
  file.close();
  Deno.removeSync(folder, { recursive: true });
});

Deno.test("prune() removes the oldest files beyond a number of bytes", () => {
  const folder = Deno.makeTempDirSync();
  // No process has this number, because no system uses numbers this high.
  const name = (n: number) => `2020-01-0${n}T00-00-00.000Z-1073741824-00000000.0001.jsonl`;
  for (const n of [1, 2, 3, 4]) Deno.writeTextFileSync(join(folder, name(n)), "x".repeat(10));
  pruneJournal(folder, { keep: name(1).slice(0, -".0001.jsonl".length), bytes: 25 });
  const left = [...Deno.readDirSync(folder)].map((entry) => entry.name).sort();
  assert.deepEqual(left, [name(1), name(3), name(4)]);
  Deno.removeSync(folder, { recursive: true });
});
