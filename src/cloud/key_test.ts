import assert from "node:assert/strict";
import { join } from "node:path";
import { KEY_FILE, readKeyFile } from "./key.ts";

Deno.test("readKeyFile() gives the key without its line end, or nothing", async () => {
  const home = await Deno.makeTempDir();
  assert.equal(readKeyFile(home), undefined);
  await Deno.writeTextFile(join(home, KEY_FILE), "  \n");
  assert.equal(readKeyFile(home), undefined);
  await Deno.writeTextFile(join(home, KEY_FILE), "pml_secret\n");
  assert.equal(readKeyFile(home), "pml_secret");
  await Deno.remove(home, { recursive: true });
});
