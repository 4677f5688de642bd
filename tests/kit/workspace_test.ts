import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { makeWorkspace } from "./workspace.ts";

Deno.test("makeWorkspace() writes the files and the configuration, and trusts it", async () => {
  const files = { "a/b.txt": "text", "bytes.bin": new Uint8Array([0, 255]) };
  await using ws = await makeWorkspace({ files, pml: { version: 1 } });
  assert.equal(await readFile(ws.file("a/b.txt"), "utf8"), "text");
  assert.deepEqual([...await readFile(ws.file("bytes.bin"))], [0, 255]);
  assert.deepEqual(JSON.parse(await readFile(ws.file(".pml.json"), "utf8")), { version: 1 });
  assert.equal(ws.env.PML_TRUST, ws.file(".pml.json"));
  assert.equal(ws.env.PML_HOME, ws.home);
  assert.equal(ws.env.PML_REGISTRIES, "none");
});

Deno.test("makeWorkspace() trusts nothing with `trusted: false`, nor without a file", async () => {
  await using untrusted = await makeWorkspace({ pml: { version: 1 }, trusted: false });
  await using empty = await makeWorkspace();
  assert.equal(untrusted.env.PML_TRUST, undefined);
  assert.equal(empty.env.PML_TRUST, undefined);
});

Deno.test("makeWorkspace() leaves nothing behind", async () => {
  const ws = await makeWorkspace({ files: { "a/b.txt": "text" } });
  await Deno.chmod(ws.file("a"), 0o500);
  await ws[Symbol.asyncDispose]();
  await assert.rejects(stat(ws.root), { code: "ENOENT" });
});

Deno.test("assertCanaries() reports a changed canary, and a new file next to it", async () => {
  await using ws = await makeWorkspace();
  await ws.assertCanaries();
  await writeFile(`${ws.outside}.new`, "");
  await assert.rejects(ws.assertCanaries(), /changed next to/);
  await Deno.remove(`${ws.outside}.new`);
  await ws.assertCanaries();
  await writeFile(ws.outside, ws.canary.toUpperCase());
  await assert.rejects(ws.assertCanaries(), /changed next to/);
});
