import assert from "node:assert/strict";
import { join } from "node:path";
import { linksOn, RulingFiles } from "./ruling_files.ts";

/** Makes a folder, and removes it with everything in it. */
async function within(run: (folder: string) => void): Promise<void> {
  const folder = await Deno.realPath(await Deno.makeTempDir());
  try {
    run(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** Makes times that are old enough for stamps to identify contents, except for the change time. */
const OLD = new Date("2020-01-01");

Deno.test("RulingFiles see another content of the same size and times (GX9)", async () => {
  await within((folder) => {
    const path = join(folder, "a.json");
    Deno.writeTextFileSync(path, "one");
    Deno.utimeSync(path, OLD, OLD);
    const files = new RulingFiles([path]);
    assert.equal(files.hasChanged(), false);
    Deno.writeTextFileSync(path, "two");
    Deno.utimeSync(path, OLD, OLD);
    assert.equal(files.hasChanged(), true);
  });
});

Deno.test("RulingFiles compare contents while a stamp is young or lacks members (GX9)", async () => {
  await within((folder) => {
    const path = join(folder, "a.json");
    Deno.writeTextFileSync(path, "one");
    const { lstatSync, statSync } = Deno;
    let change: Partial<Deno.FileInfo> = {};
    const frozen = statSync(path);
    // All writes of a test that is fast enough have the same times.
    Deno.statSync = (at) => at === path ? { ...frozen, ...change } : statSync(at);
    try {
      const old = new Date(Date.now() - 60_000);
      const table: readonly [Partial<Deno.FileInfo>, boolean][] = [
        [{}, true],
        [{ mtime: null, ctime: old }, true],
        [{ mtime: old, ctime: null }, true],
        [{ mtime: old, ctime: new Date(Date.now() + 60_000) }, true],
        [{ mtime: old, ctime: old }, false],
      ];
      for (const [members, isSeen] of table) {
        change = members;
        Deno.writeTextFileSync(path, "one");
        const files = new RulingFiles([path]);
        assert.equal(files.hasChanged(), false, JSON.stringify(members));
        Deno.writeTextFileSync(path, "two");
        assert.equal(files.hasChanged(), isSeen, JSON.stringify(members));
      }
    } finally {
      Object.assign(Deno, { lstatSync, statSync });
    }
  });
});

Deno.test("RulingFiles see files come and go, and links above them swapped (GX9)", async () => {
  await within((folder) => {
    const at = (...names: string[]) => join(folder, ...names);
    Deno.mkdirSync(at("one", "in"), { recursive: true });
    Deno.mkdirSync(at("two", "in"), { recursive: true });
    Deno.symlinkSync("one", at("current"));
    Deno.symlinkSync(at("current"), at("outer"));
    const path = at("outer", "in", "a.json");
    assert.deepEqual(linksOn(path), [at("outer"), at("current")]);
    const seen = (change: () => void) => {
      const files = new RulingFiles([path]);
      assert.equal(files.hasChanged(), false);
      change();
      return files.hasChanged();
    };
    assert.equal(seen(() => Deno.writeTextFileSync(path, "{}")), true);
    // The same file under another link.
    Deno.linkSync(at("one", "in", "a.json"), at("two", "in", "a.json"));
    const swap = () => {
      Deno.symlinkSync("two", at("next"));
      Deno.renameSync(at("next"), at("current"));
    };
    assert.equal(seen(swap), true);
    assert.equal(seen(() => Deno.writeTextFileSync(at("two", "in", "b.json"), "{}")), false);
    assert.equal(seen(() => Deno.removeSync(path)), true);
    Deno.symlinkSync("loop", at("loop"));
    assert.equal(new RulingFiles([at("loop", "a")]).hasChanged(), true, "it cannot be read");
  });
});
