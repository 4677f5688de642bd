import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { HUB_MODULES, LAYERS, MODULES } from "../tools/lint/layers.ts";
import { KINDS } from "../tools/lint/place.ts";
import { repoFile } from "./kit/pml_command.ts";
import { publishedFiles } from "./kit/published.ts";

const ENTRIES = ["mod.ts", "registry.ts", "hub/mod.ts"];

async function readRepo(path: string): Promise<string> {
  return await readFile(repoFile(path), "utf8");
}

Deno.test("the published package contains all that it imports, and no test", async () => {
  const files = await publishedFiles();
  const always = ["mod.ts", "deno.json", "deno.lock", "LICENSE", "README.md"];
  for (const path of always) assert.ok(files.includes(path), `${path} is not published`);
  const foreign = files.filter((path) =>
    /_test\.ts$/.test(path) || /^(tests|tools|bench|docs|\.ci)\//.test(path)
  );
  assert.deepEqual(foreign, [], "published, and should not be");
  for (const path of files.filter((name) => name.endsWith(".ts"))) {
    const code = await readRepo(path);
    const targets = [...code.matchAll(/(?:from |^import |\bimport\(\s*)"(\.\.?\/[^"]+)"/gm)]
      .map(([, target = ""]) => join(dirname(path), target));
    const missing = targets.filter((target) => !files.includes(target));
    assert.deepEqual(missing, [], `imported by ${path}, and not published`);
  }
});

Deno.test("the published hub contains all that it imports, and depends on PML's exact version", async () => {
  const files = await publishedFiles("hub/");
  for (const path of ["mod.ts", "deno.json", "LICENSE", "README.md"]) {
    assert.ok(files.includes(path), `${path} is not published`);
  }
  assert.deepEqual(files.filter((path) => /_test\.ts$|^bench\//.test(path)), []);
  for (const path of files.filter((name) => name.endsWith(".ts"))) {
    const code = await readRepo(`hub/${path}`);
    const targets = [...code.matchAll(/(?:from |^import |\bimport\(\s*)"(\.\.?\/[^"]+)"/gm)]
      .map(([, target = ""]) => join(dirname(path), target));
    assert.deepEqual(targets.filter((target) => !files.includes(target)), [], path);
  }
  const { version } = JSON.parse(await readRepo("deno.json"));
  const hub = JSON.parse(await readRepo("hub/deno.json"));
  const { "@casys/pml/registry": face, ...others } = hub.imports;
  assert.equal(face, `jsr:@casys/pml@${version}/registry`);
  const { specifiers } = JSON.parse(await readRepo("deno.lock"));
  for (const [name, wanted] of Object.entries<string>(others)) {
    assert.match(wanted, /^npm:(@[\w-]+\/)?[\w.-]+@\d+\.\d+\.\d+$/, name);
    assert.ok(Object.hasOwn(specifiers, wanted), `${wanted} is not in deno.lock`);
  }
  assert.match(await readRepo("hub/src/cli/cli.ts"), new RegExp(`VERSION = "${hub.version}"`));
  assert.match(await readRepo("hub/src/mcp/mcp.ts"), new RegExp(`version: "${hub.version}"`));
});

Deno.test("every export of the package is documented and refers to nothing private", async () => {
  const { code, stderr } = await new Deno.Command(process.execPath, {
    args: ["doc", "--lint", ...ENTRIES],
    cwd: repoFile(""),
    env: { NO_COLOR: "1" },
  }).output();
  assert.equal(code, 0, new TextDecoder().decode(stderr));
});

Deno.test("every dependency is one exact version, in the lock too", async () => {
  const { imports } = JSON.parse(await readRepo("deno.json"));
  const { specifiers, remote } = JSON.parse(await readRepo("deno.lock"));
  assert.equal(remote, undefined, "a test wrote the addresses of its modules into the lock");
  for (const [name, wanted] of Object.entries<string>(imports)) {
    assert.match(wanted, /^npm:(@[\w-]+\/)?[\w.-]+@\d+\.\d+\.\d+$/, name);
    assert.ok(Object.hasOwn(specifiers, wanted), `${wanted} is not in deno.lock`);
  }
});

Deno.test("the version is the same in every file", async () => {
  const { version } = JSON.parse(await readRepo("deno.json"));
  assert.match(await readRepo("src/core/version.ts"), new RegExp(`VERSION = "${version}"`));
});

Deno.test("the files name one version of Deno, and it is the running one", async () => {
  for (const path of [".ci/run", "README.md", "CONTRIBUTING.md"]) {
    const named = (await readRepo(path)).matchAll(/(?:deno@|^readonly version=)(\d+\.\d+\.\d+)/gm);
    const versions = new Set([...named].map(([, version]) => version));
    assert.deepEqual([...versions], [Deno.version.deno], path);
  }
});

Deno.test("every folder of the source is a module that the lint rules know", async () => {
  const entries = await readdir(repoFile("src"), { withFileTypes: true });
  assert.deepEqual(entries.filter((entry) => !entry.isDirectory()), [], "loose in src/");
  // The definitions of server kinds are a layer, in the folders of their runtimes.
  const folders = MODULES.filter((module) => module !== KINDS);
  assert.deepEqual(entries.map(({ name }) => name).sort(), [...folders].sort());
  const hub = await readdir(repoFile("hub/src"));
  assert.deepEqual(hub.filter((name) => !HUB_MODULES.includes(name)), [], "in hub/src/");
});

Deno.test("docs/design.md lists the layers of the lint rules", async () => {
  const page = await readRepo("docs/design.md");
  const rows = [...page.matchAll(/^- (\d+) `(\w+)`: /gm)];
  const listed = rows.map(([, layer, module]) => `${layer} ${module}`);
  assert.deepEqual(
    listed,
    LAYERS.flatMap((modules, at) => modules.map((name) => `${at + 1} ${name}`)),
  );
});
