/**
 * Names that begin with a dot at the top of a workspace: a future tool may obey a file that no list
 * contains today.
 *
 * @module
 */

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assertRefused, use, WRITING } from "./file_tools.ts";
import { codeOf, endWell, textOf } from "./oracles.ts";
import { makeScene, type Scene } from "./stage.ts";

const SECRET = "secret of the file";
const LAYERS = ["auto", "off"] as const;

async function sceneOf(layer: typeof LAYERS[number], grants?: object): Promise<Scene> {
  return await makeScene({
    files: { ".newagentrc": SECRET, ".newagent/rules.md": SECRET },
    pml: {
      version: 1,
      permissions: { allow: ["filesystem:*"] },
      ...grants && { grants: { filesystem: grants } },
    },
    prepare: async (ws) => {
      await writeFile(join(ws.home, "config.yaml"), `sandbox: {os_layer: ${layer}}\n`);
    },
  });
}

for (const layer of LAYERS) {
  Deno.test(`an unlisted name with a dot at the top of a workspace is closed for writing: ${layer} (GX12)`, async () => {
    await using scene = await sceneOf(layer);
    const { ws, pml } = scene;
    const paths = [
      ...[".newagentrc", ".newagent/rules.md", ".later", ".later/rules.md", "./.later"],
      ...[".LATER", "\uff0elater", ws.file(".later")],
    ];
    for (const path of paths) {
      for (const tool of Object.keys(WRITING)) {
        assertRefused(await use(pml, tool, { path }), { what: `${tool} ${path}` });
      }
    }
    const names = (await readdir(ws.path)).toSorted();
    assert.deepEqual(names, [".newagent", ".newagentrc", ".pml.json", "good.txt"]);
    assert.equal(await readFile(ws.file(".newagent/rules.md"), "utf8"), SECRET);
    assert.equal(await readFile(ws.file(".newagentrc"), "utf8"), SECRET);
    const refused = await use(pml, "write_file", { path: ".newagent/rules.md" });
    assert.equal(codeOf(refused), "PATH_PROTECTED");
    assert.match(textOf(refused), /grant "write": \["\.newagent"\] to the server in \.pml\.json/);
    // It can be read, and usual files of development can be written, also below the top.
    assert.equal(textOf(await use(pml, "read_file", { path: ".newagentrc" })), SECRET);
    await mkdir(ws.file("deep"));
    for (const path of [".gitignore", ".prettierrc.json", "deep/.newagentrc"]) {
      const written = await use(pml, "write_file", { path });
      assert.equal(codeOf(written), undefined, textOf(written));
      assert.equal(await readFile(ws.file(path), "utf8"), "attacked");
    }
    await endWell(ws, pml);
  });

  Deno.test(`a grant of a name with a dot opens that name, and no other: ${layer} (GX12)`, async () => {
    await using scene = await sceneOf(layer, { write: [".newagent"] });
    const { ws, pml } = scene;
    for (const path of [".newagent/rules.md", ".newagent/more.md"]) {
      const written = await use(pml, "write_file", { path });
      assert.equal(codeOf(written), undefined, textOf(written));
      assert.equal(await readFile(ws.file(path), "utf8"), "attacked");
    }
    for (const path of [".newagentrc", ".newagent2", ".later/rules.md"]) {
      assertRefused(await use(pml, "write_file", { path }), { code: "PATH_PROTECTED", what: path });
    }
    assert.equal(await readFile(ws.file(".newagentrc"), "utf8"), SECRET);
    await endWell(ws, pml);
  });
}
