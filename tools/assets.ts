/**
 * `deno task assets`: bundles each program that PML ships as text and runs in a sandbox child. A
 * text import cannot be bundled when it is needed, so the texts are made here and committed; a test
 * compares them with their sources.
 *
 * @module
 */

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
  "src/registry/importable_code.min.js": "src/sandbox/boot/importable_code.ts",
  "src/registry/importable_plan.min.js": "src/workflow/importable_plan.ts",
  "src/sandbox/boot/keeper.min.js": "src/sandbox/boot/keeper_main.ts",
  "src/sandbox/boot/confined.min.js": "src/sandbox/boot/confined_main.ts",
  "src/sandbox/boot/embedder.min.js": "src/sandbox/boot/embedder_main.ts",
};

/** Sources that come first in a script with others, and so have their own scope. */
const BEFORE = ["src/sandbox/boot/kernel_main.ts", "src/sandbox/boot/confined_main.ts"];

/**
 * Bundles a source into one script. What Deno minifies can be made smaller still; comparisons stay
 * as Deno writes them, so that they are packed with those of the package.
 */
export async function bundled(source: string): Promise<string> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--minify", "--platform", "deno", new URL(source, ROOT).pathname],
    cwd: ROOT,
  }).output();
  if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
  const options = {
    module: true,
    ecma: 2020,
    compress: { passes: 3, pure_getters: true, lhs_constants: false },
  } as const;
  const { code: smaller = "" } = await minify(new TextDecoder().decode(stdout), options);
  return BEFORE.includes(source) ? `(()=>{${smaller}})();\n` : `${smaller}\n`;
}

if (import.meta.main) {
  for (const [asset, source] of Object.entries(ASSETS)) {
    const text = await bundled(source);
    await Deno.writeTextFile(new URL(asset, ROOT), text);
    console.log(`${asset}: ${text.length} characters`);
  }
}
