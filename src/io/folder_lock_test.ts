import assert from "node:assert/strict";
import { join } from "node:path";
import { until } from "../../tests/kit/wait.ts";
import { lockFolder } from "./folder_lock.ts";

Deno.test("lockFolder() locks a folder for one owner, and leaves no file behind", async () => {
  const root = await Deno.makeTempDir();
  const folder = join(root, "deep", "made");
  {
    using _ = lockFolder(folder);
    assert.throws(() => lockFolder(folder), { code: "OVERLOADED", message: /another PML/ });
  }
  lockFolder(folder)[Symbol.dispose]();
  // Wine shows a removed file for a moment.
  await until(() => [...Deno.readDirSync(join(root, "deep"))].length === 0);
  if (Deno.build.os !== "windows") assertNoLockOfRemoved(folder);
  await Deno.remove(root, { recursive: true });
});

/** On Windows a file that is removed keeps its name until all have closed it. */
function assertNoLockOfRemoved(folder: string): void {
  const { openSync } = Deno;
  try {
    // The previous owner removes the file now: a lock on the removed file protects nothing.
    Deno.openSync = (path, options) => {
      const file = openSync(path, options);
      Deno.removeSync(path);
      return file;
    };
    assert.throws(() => lockFolder(folder), { code: "OVERLOADED" });
  } finally {
    Object.assign(Deno, { openSync });
  }
}
