import assert from "node:assert/strict";
import { join } from "node:path";
import { alone } from "./folder_lock.ts";

Deno.test("alone() lets one in, refuses the others, and leaves nothing behind", async () => {
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
    // Who held it takes the file away just now: a lock on that keeps nobody out.
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
