/**
 * `deno task assets`: bundles the programs that PML ships as text and runs in sandbox children, the
 * page that `pml page` serves, and the library for YAML. PML cannot bundle at run time, so the bundles
 * are committed; a test compares them with their sources.
 *
 * @module
 */

import { join } from "node:path";
import { minify } from "terser";
import { SHARED_STYLE } from "../hub/src/page/_shared_style.ts";
import { STYLE } from "../page/style.ts";

const ROOT = new URL("../", import.meta.url);

/** The bundles that ship, with the source of each. */
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

/** A bundle that uses no function of Node, and the notice of the packages in it. */
interface PortableAsset {
  readonly asset: string;
  readonly source: string;
  readonly notice: string;
}

/** The program of the page, which runs in a browser. */
const PAGE: PortableAsset = {
  asset: "src/page/page.min.js",
  source: "page/main.tsx",
  notice: "page/notice.txt",
};
/** The library that reads `config.yaml`. Each start imports it, and its own 74 files take 30 ms. */
const YAML: PortableAsset = {
  asset: "src/config/yaml.min.js",
  source: "src/config/yaml_main.ts",
  notice: "src/config/yaml_notice.txt",
};
const PAGE_STYLE = "src/page/page.min.css";
const PAGE_HTML = "src/page/page.html";
/** All files of the page. */
export const PAGE_ASSETS = [PAGE.asset, PAGE_STYLE, PAGE_HTML] as const;

/** Sources that run in one script with later code, so each gets its own scope. */
const SCOPED_SOURCES = ["src/sandbox/boot/kernel_main.ts", "src/sandbox/boot/confined_main.ts"];

/**
 * Bundles each source into one script, and creates the files of the page. Returns the texts by the
 * names of the assets.
 */
export async function bundleAssets(): Promise<ReadonlyMap<string, string>> {
  const folder = await Deno.makeTempDir({ prefix: "pml-assets-" });
  try {
    const sources = Object.values(ASSETS);
    await bundle(["--platform", "deno", "--outdir", folder, ...sources]);
    const texts = new Map<string, string>();
    for (const [asset, source] of Object.entries(ASSETS)) {
      const path = join(folder, source.replace(/\.ts$/, ".js"));
      texts.set(asset, await minifyBundle(await Deno.readTextFile(path), source));
    }
    for (const { asset, source, notice } of [PAGE, YAML]) {
      const path = join(folder, "portable.js");
      await bundle(["--platform", "browser", "--output", path, source]);
      const code = await minifyBundle(await Deno.readTextFile(path), source);
      texts.set(asset, await Deno.readTextFile(new URL(notice, ROOT)) + code);
    }
    texts.set(PAGE_STYLE, minifyStyle(`${SHARED_STYLE}\n${STYLE}`));
    texts.set(PAGE_HTML, await Deno.readTextFile(new URL("page/page.html", ROOT)));
    return texts;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function bundle(options: readonly string[]): Promise<void> {
  const { code, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["bundle", "--quiet", "--minify", ...options],
    cwd: ROOT,
  }).output();
  if (code !== 0) throw new Error(new TextDecoder().decode(stderr));
}

/** Removes comments and unnecessary spaces from CSS. */
function minifyStyle(style: string): string {
  const lines = style.replace(/\/\*[^]*?\*\//g, "").split("\n").map((line) => line.trim());
  return `${lines.filter((line) => line !== "").join("\n").replace(/([{;,])[ \n]/g, "$1")}\n`;
}

/**
 * Minifies a bundle more than Deno does. Keeps the order of comparisons as Deno writes it, so that
 * the bundles compress well together with the rest of the package.
 */
async function minifyBundle(bundle: string, source: string): Promise<string> {
  const options = {
    module: true,
    ecma: 2020,
    compress: { passes: 3, pure_getters: true, lhs_constants: false },
  } as const;
  const { code = "" } = await minify(bundle, options);
  return SCOPED_SOURCES.includes(source) ? `(()=>{${code}})();\n` : `${code}\n`;
}

if (import.meta.main) {
  for (const [asset, text] of await bundleAssets()) {
    await Deno.writeTextFile(new URL(asset, ROOT), text);
    console.log(`${asset}: ${text.length} characters`);
  }
}
