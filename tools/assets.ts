/**
 * `deno task assets`: bundles each program that PML ships as text and runs in a sandbox child. A
 * text import cannot be bundled when it is needed, so the texts are made here and committed; a test
 * compares them with their sources.
 *
 * @module
 */

import { join } from "node:path";
import { minify } from "terser";

const ROOT = new URL("../", import.meta.url);

/** The texts that ship, and the source of each. */
export const ASSETS: Readonly<Record<string, string>> = {
  "builtin/filesystem.min.js": "builtin/filesystem/filesystem.ts",
  "builtin/shell.min.js": "builtin/shell/shell.ts",
  "builtin/sqlite.min.js": "builtin/sqlite/sqlite.ts",
  "builtin/git.min.js": "builtin/git/git.ts",
  "src/sandbox/boot/host.min.js": "src/sandbox/boot/host_main.ts",
  "src/sandbox/boot/kernel.min.js": "src/sandbox/boot/kernel_main.ts",
  "src/sandbox/boot/worker.min.js": "src/sandbox/boot/worker_main.ts",
  "src/sandbox/boot/code.min.js": "src/sandbox/boot/code.ts",
  "src/sandbox/boot/schemas.min.js": "src/sandbox/boot/schemas.ts",
  "src/sandbox/boot/select.min.js": "src/sandbox/boot/select.ts",
  "src/registry/importable_code.min.js": "src/sandbox/boot/importable_code.ts",
  "src/registry/importable_plan.min.js": "src/workflow/importable_plan.ts",
  "src/sandbox/boot/keeper.min.js": "src/sandbox/boot/keeper_main.ts",
  "src/sandbox/boot/confined.min.js": "src/sandbox/boot/confined_main.ts",
  "src/sandbox/boot/embedder.min.js": "src/sandbox/boot/embedder_main.ts",
};

/** Sources that come first in a script with others, and so have their own scope. */
const BEFORE = ["src/sandbox/boot/kernel_main.ts", "src/sandbox/boot/confined_main.ts"];

/**
 * Bundles each source into one script, all with one start of the bundler. Returns the texts by the
 * names of the assets.
 */
export async function bundledAssets(): Promise<ReadonlyMap<string, string>> {
  const folder = await Deno.makeTempDir({ prefix: "pml-assets-" });
  try {
    const { code, stderr } = await new Deno.Command(Deno.execPath(), {
      args: [
        ...["bundle", "--quiet", "--minify", "--platform", "deno", "--outdir", folder],
        ...Object.values(ASSETS),
      ],
      cwd: ROOT,
    }).output();
    if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
    const texts = new Map<string, string>();
    for (const [asset, source] of Object.entries(ASSETS)) {
      const path = join(folder, source.replace(/\.ts$/, ".js"));
      texts.set(asset, await smaller(await Deno.readTextFile(path), source));
    }
    return texts;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/**
 * Minifies a bundle further than Deno does. Comparisons stay as Deno writes them, so that they are
 * packed with those of the package.
 */
async function smaller(bundle: string, source: string): Promise<string> {
  const options = {
    module: true,
    ecma: 2020,
    compress: { passes: 3, pure_getters: true, lhs_constants: false },
  } as const;
  const { code = "" } = await minify(bundle, options);
  return BEFORE.includes(source) ? `(()=>{${code}})();\n` : `${code}\n`;
}

if (import.meta.main) {
  for (const [asset, text] of await bundledAssets()) {
    await Deno.writeTextFile(new URL(asset, ROOT), text);
    console.log(`${asset}: ${text.length} characters`);
  }
}
