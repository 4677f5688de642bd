import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { libraryHere, packageIn } from "../../../tests/kit/embedder.ts";
import { FakeNpm } from "../../../tests/kit/fake_npm.ts";

const library = await libraryHere();
const why = typeof library === "string" ? ` (not run: ${library})` : "";

Deno.test({
  name: `EmbedderPackage installs exactly the files that PML ships hashes of${why}`,
  ignore: why !== "",
  fn: async () => {
    assert.ok(typeof library !== "string");
    const home = await Deno.makeTempDir();
    await cp(library.folder, join(home, "embedder", library.name), { recursive: true });
    const one = packageIn(home);
    assert.equal(one.isInstalled(), true);
    const names = [...Deno.readDirSync(one.folder)].map(({ name }) => name).sort();
    assert.deepEqual(names, [
      "ort-wasm-simd-threaded.wasm",
      "ort.wasm.bundle.min.mjs",
      "pml-installed.json",
      "transformers.web.min.js",
    ]);
    assert.equal(await one.ensureInstalled(), one.folder);
    const file = join(one.folder, "transformers.web.min.js");
    const before = await Deno.readTextFile(file);
    for (const text of [`${before} `, before.replace("a", "b")]) {
      await Deno.writeTextFile(file, text);
      await assert.rejects(one.ensureInstalled(), {
        code: "INTEGRITY_MISMATCH",
        hint: /built-in model/,
      });
    }
    await Deno.writeTextFile(file, before);
    await one.ensureInstalled();
    await Deno.writeTextFile(join(one.folder, "more.js"), "planted");
    await assert.rejects(one.ensureInstalled(), { code: "INTEGRITY_MISMATCH" });
    await one.remove();
    assert.equal(one.isInstalled(), false);
    await Deno.remove(home, { recursive: true });
  },
});

Deno.test("EmbedderPackage refuses a tarball with a different hash, and leaves no files", async () => {
  const files = { "dist/transformers.web.min.js": "planted()" };
  await using npm = new FakeNpm({
    "@huggingface/transformers": { "4.3.1": files },
    "onnxruntime-web": { "1.31.0-dev.20260914-8d85527a0": files },
  });
  const home = await Deno.makeTempDir();
  const settings = join(home, "settings");
  await Deno.writeTextFile(settings, `registry=${npm.url}\n`);
  const messages: string[] = [];
  const one = packageIn(home, { NPM_CONFIG_USERCONFIG: settings, NPM_CONFIG_REGISTRY: npm.url });
  await assert.rejects(one.ensureInstalled((message) => messages.push(message)), (error: Error) => {
    assert.match(error.message, /^Cannot install @huggingface\/transformers 4\.3\.1: /);
    assert.match(JSON.stringify(error), /checksum|integrity/i);
    return true;
  });
  assert.ok(npm.asked.length > 0, "the registry of the user's settings was used");
  assert.match(messages[0] ?? "", /^Installing/);
  assert.equal(one.isInstalled(), false);
  assert.deepEqual([...Deno.readDirSync(join(home, "embedder"))], []);
  await Deno.remove(home, { recursive: true });
});

Deno.test("EmbedderPackage reports that search uses the built-in model if no registry answers", async () => {
  const home = await Deno.makeTempDir();
  const one = packageIn(home, { NPM_CONFIG_REGISTRY: "http://127.0.0.1:9/" });
  // Removes the rest of a killed installation, not an installation that another PML runs now.
  const [old, now] = [`${one.folder}.old`, `${one.folder}.now`];
  for (const folder of [old, now]) await Deno.mkdir(folder, { recursive: true });
  await Deno.utime(old, new Date(0), new Date(0));
  await assert.rejects(one.ensureInstalled(), { code: "UPSTREAM_DOWN", hint: /built-in model/ });
  assert.throws(() => Deno.statSync(old), Deno.errors.NotFound);
  await Deno.remove(now);
  assert.deepEqual([...Deno.readDirSync(join(home, "embedder"))], []);
  await Deno.remove(home, { recursive: true });
});
