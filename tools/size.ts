/**
 * Weighs the package as it ships: bundled, minified, npm packages left out, gzipped. Weighs also
 * what a client waits for, and what an install brings from npm.
 *
 * @module
 */

import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { gzipSync } from "node:zlib";

/** How many bytes the package may have. */
export const BUDGET = 205_000;

/** How many bytes may be loaded before the first answer. */
export const START_BUDGET = 40_000;

/** What `pml stdio` loads before its first answer, but for what these import lazily. */
export const START: readonly string[] = [
  "src/cli/cli.ts",
  "src/cli/_stdio.ts",
  "src/app/app.ts",
  "src/serve/stdio.ts",
];

/** What the package weighs. */
export interface Size {
  readonly gzipped: number;
  readonly minified: number;
  readonly budget: number;
}

/** Weighs what an entry file ships, with the configuration whose `imports` name the packages. */
export async function sizeOf(entry: string, config: string): Promise<Size> {
  return await bundled([entry], { config }, async (folder) => {
    const [path = ""] = await filesIn(folder);
    const code = await readFile(path);
    return { gzipped: zipped(code), minified: code.length, budget: BUDGET };
  });
}

/** Weighs what is loaded with these files, which stand below `root`: nothing that they load later. */
export async function startSizeOf(files: readonly string[], root: string): Promise<number> {
  const paths = files.map((file) => join(root, file));
  const options = { config: join(root, "deno.json"), more: ["--code-splitting"] };
  return await bundled(paths, options, async (folder) => {
    const isEntry = (path: string) =>
      files.some((file) => path.endsWith(`/${file.split("/").at(-1)?.replace(/ts$/, "js")}`));
    const loaded = new Set((await filesIn(folder)).filter(isEntry));
    let all = "";
    for (const path of loaded) {
      const code = await readFile(path, "utf8");
      all += code;
      const imports = code.matchAll(/\b(?:from|import)"(\.[^"]+)"/g);
      for (const [, name = ""] of imports) loaded.add(join(dirname(path), name));
    }
    return zipped(all);
  });
}

/** Weighs the npm packages that an entry file brings, unpacked. */
export async function installSizeOf(entry: string): Promise<{ packages: number; bytes: number }> {
  const { modules, npmPackages } = JSON.parse(await run(["info", "--json", entry]));
  const names = new Set<string>(
    modules.flatMap(({ npmPackage }: { npmPackage?: string }) => npmPackage ?? []),
  );
  let bytes = 0;
  for (const name of names) {
    const { dependencies, localPath } = npmPackages[name];
    for (const dependency of dependencies) names.add(dependency);
    const sizes = (await filesIn(localPath)).map(async (path) => (await stat(path)).size);
    bytes += (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  }
  return { packages: names.size, bytes };
}

/** Tells a size in one line. */
export function tellSize({ gzipped, minified, budget }: Size): string {
  const verdict = gzipped < budget ? "within" : "beyond";
  return `${number(gzipped)} bytes gzipped (${number(minified)} minified), ` +
    `${verdict} the budget of ${number(budget)}`;
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

async function bundled<T>(
  entries: readonly string[],
  { config, more = [] }: { readonly config: string; readonly more?: readonly string[] },
  weigh: (folder: string) => Promise<T>,
): Promise<T> {
  const names = Object.keys(JSON.parse(await readFile(config, "utf8")).imports ?? {});
  const outside = ["npm:*", ...names.flatMap((name) => [name, `${name}/*`])];
  const folder = await mkdtemp(join(tmpdir(), "pml-size-"));
  try {
    const externals = outside.flatMap((name) => ["--external", name]);
    const kind = ["--minify", "--platform", "deno", "--config", config, ...more];
    await run(["bundle", ...kind, ...externals, "--outdir", folder, ...entries]);
    return await weigh(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}

function zipped(code: string | Uint8Array): number {
  return gzipSync(code, { level: 9 }).length;
}

async function run(args: readonly string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(process.execPath, { args: [...args] })
    .output();
  if (success) return new TextDecoder().decode(stdout);
  throw new Error(`deno ${args[0]} failed: ${new TextDecoder().decode(stderr)}`);
}

async function main(): Promise<void> {
  const root = decodeURIComponent(new URL("..", import.meta.url).pathname);
  const entry = join(root, "mod.ts");
  const size = await sizeOf(entry, join(root, "deno.json"));
  const start = await startSizeOf(START, root);
  const npm = await installSizeOf(entry);
  if (Deno.args.includes("--json")) console.log(JSON.stringify({ ...size, start, npm }));
  else {
    console.log(tellSize(size));
    console.log(`${number(start)} bytes of it are loaded before the first answer`);
    console.log(`${npm.packages} packages of npm come with it: ${number(npm.bytes)} bytes`);
  }
  Deno.exitCode = size.gzipped < size.budget ? 0 : 1;
}

if (import.meta.main) await main();
