import assert from "node:assert/strict";
import { join } from "node:path";
import { alone } from "./folder_lock.ts";

Deno.test("alone() locks a folder for one owner, and leaves no file behind", async () => {
  const root = await Deno.makeTempDir();
  const folder = join(root, "deep", "made");
  {
    using _ = alone(folder);
    assert.throws(() => alone(folder), { code: "OVERLOADED", message: /another PML/ });
  }
  alone(folder)[Symbol.dispose]();
  assert.deepEqual([...Deno.readDirSync(join(root, "deep"))], []);
  const { openSync } = Deno;
  try {
    // The previous owner removes the file now: a lock on the removed file protects nothing.
    Deno.openSync = (path, options) => {
      const file = openSync(path, options);
      Deno.removeSync(path);
      return file;
    };
    assert.throws(() => alone(folder), { code: "OVERLOADED" });
  } finally {
    Object.assign(Deno, { openSync });
  }
  await Deno.remove(root, { recursive: true });
});
