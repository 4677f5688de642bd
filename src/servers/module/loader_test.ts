import assert from "node:assert/strict";
import { join } from "node:path";
import { NO_PERMISSIONS } from "../../protocol/tool.ts";
import { integrityOf } from "../../core/hash.ts";
import { Loader } from "./loader.ts";
import { ModuleFiles } from "./module_files.ts";

const CODE = `export const __meta__ = { name: "mine", tools: { run: {} } };
export const run = () => "ran";`;
const META = { name: "mine", tools: { run: { permissions: { read: ["notes"] } } } };

async function stage() {
  const root = await Deno.realPath(await Deno.makeTempDir());
  const path = join(root, "mine.js");
  await Deno.writeTextFile(path, CODE);
  const looked: string[] = [];
  const loader = new Loader(root, new ModuleFiles(), {
    moduleBytes: 1_000_000,
    inspect: ({ code }) => {
      looked.push(new TextDecoder().decode(code));
      return Promise.resolve({ meta: META, exports: ["run"] });
    },
  });
  const source = { kind: "file", name: "mine", path } as const;
  const close = () => Deno.remove(root, { recursive: true });
  return { loader, source, path, looked, [Symbol.asyncDispose]: close };
}

Deno.test("load() returns the approved bytes, and inspects no other bytes", async () => {
  await using at = await stage();
  const { loader, source } = at;
  const use = { source, expectedHash: integrityOf(CODE), grants: undefined };
  const listed = await loader.load(use);
  assert.equal(new TextDecoder().decode(listed.code), CODE);
  // Between the list and the call another program writes to the file.
  const evil = CODE.replace('"ran"', '"evil"');
  await Deno.writeTextFile(at.path, evil);
  await assert.rejects(loader.load(use), { code: "INTEGRITY_MISMATCH" });
  assert.deepEqual(at.looked, [CODE]);
  const expectedHash = integrityOf(evil);
  await assert.rejects(loader.load({ ...use, expectedHash: "no code" }), {
    code: "INTEGRITY_MISMATCH",
  });
  assert.equal((await loader.load({ ...use, expectedHash })).integrity, expectedHash);
  await assert.rejects(loader.load(use), { code: "INTEGRITY_MISMATCH" });
  await Deno.writeTextFile(at.path, CODE);
  const again = await loader.load(use);
  assert.equal(again.definitions, listed.definitions, "the same array for the same code");
});

Deno.test("load() refuses, at each use, code with more permissions than its registry entry lists", async () => {
  await using at = await stage();
  const use = { source: at.source, expectedHash: integrityOf(CODE), grants: undefined };
  const promised = { ...NO_PERMISSIONS, read: ["notes"] };
  // Other uses of the same code, with no list or a longer one, do not allow it.
  await at.loader.load(use);
  await at.loader.load({ ...use, listedPermissions: promised });
  for (const _ of [1, 2]) {
    await assert.rejects(at.loader.load({ ...use, listedPermissions: NO_PERMISSIONS }), {
      code: "REGISTRY_BAD_RESPONSE",
      message: /read "notes"/,
    });
  }
});

Deno.test("load() returns the bytes of a draft instead of those of its file, and caches nothing", async () => {
  await using at = await stage();
  const code = new TextEncoder().encode(CODE.replace('"ran"', '"draft"'));
  const draft = { code, integrity: integrityOf(code) };
  const use = { source: { ...at.source, draft }, expectedHash: undefined, grants: undefined };
  assert.equal((await at.loader.load(use)).code, code);
  assert.deepEqual(at.looked, [new TextDecoder().decode(code)]);
  await assert.rejects(Deno.stat(join(at.path, "../meta")), Deno.errors.NotFound);
});
