/**
 * Measures the size of the package: its own code (bundled, minified and gzipped, without npm
 * packages), and the unpacked npm packages of an install.
 *
 * @module
 */

import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { gzipSync } from "node:zlib";

/** Data files that ship. PML loads them when they are first needed. */
const DATA = ["config/word-vectors.txt"];
/** Packages of npm that ship as one file. They are counted with the packages of an install. */
const BUNDLED_PACKAGES = ["src/config/yaml.min.js"];

/** The committed sizes, in bytes, and the reason for the last change of them. */
export interface CommittedSizes {
  readonly ownCode: number;
  readonly npm: number;
  readonly data: number;
  readonly reason: string;
}

/** The share by which a measured size may exceed the committed one. */
export const TOLERANCE = 0.1;

/** The size of the package's own code. */
export interface Size {
  readonly gzipped: number;
  readonly minified: number;
  /** The bytes of each module: its share of the minified code, scaled to the gzipped size. */
  readonly modules: Readonly<Record<string, number>>;
}

/** Returns the size of the code of an entry file. `config` is the `deno.json` with its packages. */
export async function sizeOf(entry: string, config: string): Promise<Size> {
  const options = { config, more: ["--sourcemap=external"] };
  return await withBundle([entry], options, async (folder) => {
    const files = await filesIn(folder);
    const code = await readFile(files.find((path) => path.endsWith(".js")) ?? "", "utf8");
    const map = JSON.parse(
      await readFile(files.find((path) => path.endsWith(".map")) ?? "", "utf8"),
    );
    const [gzipped, minified] = [gzippedSize(code), new TextEncoder().encode(code).length];
    const modules = Object.fromEntries(
      [...charactersByModule(code, map)].sort(([, a], [, b]) => b - a)
        .map(([name, characters]) => [name, Math.round(characters * gzipped / minified)]),
    );
    return { gzipped, minified, modules };
  });
}

/** The members of a source map that this file reads. */
interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** Counts the characters of a bundle for each module of the sources. */
function charactersByModule(code: string, { sources, mappings }: SourceMap): Map<string, number> {
  const modules = sources.map((path) => /\/(?:src\/([a-z_]+)|(builtin))\//.exec(path))
    .map((match) => match?.slice(1).find(Boolean) ?? "the rest");
  const counts = new Map<string, number>();
  let source = 0;
  for (const [index, line] of mappings.split(";").entries()) {
    const length = code.split("\n", index + 1)[index]?.length ?? 0;
    let column = 0;
    const starts = line.split(",").filter(Boolean).map((segment) => {
      const [columnDelta = 0, sourceDelta = 0] = decodeVlq(segment);
      return [column += columnDelta, source += sourceDelta] as const;
    });
    for (const [segment, [start, module]] of starts.entries()) {
      const end = starts[segment + 1]?.[0] ?? length;
      const name = modules[module] ?? "the rest";
      counts.set(name, (counts.get(name) ?? 0) + end - start);
    }
  }
  return counts;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Decodes a segment of a source map: numbers as base64 VLQ. */
function decodeVlq(segment: string): readonly number[] {
  const numbers: number[] = [];
  let [value, shift] = [0, 0];
  for (const digit of segment) {
    const bits = DIGITS.indexOf(digit);
    value += (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}

/** Returns the unpacked size of the npm packages that an entry file imports, and of the bundled ones. */
export async function installSizeOf(
  entry: string,
): Promise<{ packages: number; bytes: number; largest: Readonly<Record<string, number>> }> {
  const { modules, npmPackages } = JSON.parse(await run(["info", "--json", entry]));
  const names = new Set<string>(
    modules.flatMap(({ npmPackage }: { npmPackage?: string }) => npmPackage ?? []),
  );
  const sizes = new Map<string, number>();
  for (const name of names) {
    const { dependencies, localPath } = npmPackages[name];
    for (const dependency of dependencies) names.add(dependency);
    const fileSizes = (await filesIn(localPath)).map(async (path) => (await stat(path)).size);
    sizes.set(name, (await Promise.all(fileSizes)).reduce((sum, size) => sum + size, 0));
  }
  for (const path of BUNDLED_PACKAGES) sizes.set(path, await fileSize(path));
  const sorted = [...sizes].sort(([, a], [, b]) => b - a);
  const bytes = sorted.reduce((sum, [, size]) => sum + size, 0);
  return { packages: sizes.size, bytes, largest: Object.fromEntries(sorted.slice(0, 5)) };
}

/** Returns the size of the data that ships, unpacked. */
export async function dataSize(): Promise<number> {
  return (await Promise.all(DATA.map(fileSize))).reduce((sum, size) => sum + size, 0);
}

async function fileSize(path: string): Promise<number> {
  return (await stat(new URL(`../${path}`, import.meta.url))).size;
}

/** Formats sizes by name, one per line. */
export function formatSizes(sizes: Readonly<Record<string, number>>): string {
  return Object.entries(sizes)
    .map(([name, size]) => `  ${name.padEnd(32)} ${number(size).padStart(9)}`)
    .join("\n");
}

/** Reads the committed sizes. */
export async function committedSizes(): Promise<CommittedSizes> {
  return JSON.parse(await readFile(new URL("sizes.json", import.meta.url), "utf8"));
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

async function withBundle<T>(
  entries: readonly string[],
  { config, more = [] }: { readonly config: string; readonly more?: readonly string[] },
  measure: (folder: string) => Promise<T>,
): Promise<T> {
  const names = Object.keys(JSON.parse(await readFile(config, "utf8")).imports ?? {});
  const externalPatterns = [
    ...["npm:*", ...[...DATA, ...BUNDLED_PACKAGES].map((path) => `*/${path.split("/").at(-1)}`)],
    ...names.flatMap((name) => [name, `${name}/*`]),
  ];
  const folder = await mkdtemp(join(tmpdir(), "pml-size-"));
  try {
    const externals = externalPatterns.flatMap((name) => ["--external", name]);
    const kind = ["--minify", "--platform", "deno", "--config", config, ...more];
    await run(["bundle", ...kind, ...externals, "--outdir", folder, ...entries]);
    return await measure(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}

function gzippedSize(code: string | Uint8Array): number {
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
  const npm = await installSizeOf(entry);
  const committed = await committedSizes();
  if (Deno.args.includes("--json")) {
    console.log(JSON.stringify({ ...size, npm, data: await dataSize(), committed }));
    return;
  }
  console.log(`own code: ${number(size.gzipped)} bytes gzipped, ${number(size.minified)} minified`);
  console.log(`  committed: ${number(committed.ownCode)} gzipped`);
  console.log(formatSizes(size.modules));
  console.log(`npm: ${npm.packages} packages, ${number(npm.bytes)} bytes unpacked`);
  console.log(`  committed: ${number(committed.npm)}`);
  console.log(formatSizes(npm.largest));
  console.log(`data: ${number(await dataSize())} bytes`);
  console.log(`  committed: ${number(committed.data)}`);
}

if (import.meta.main) await main();
