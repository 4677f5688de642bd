/**
 * Measures the package as it ships: its own code bundled, minified and gzipped without npm packages,
 * and the npm packages of an install, unpacked.
 *
 * @module
 */

import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { gzipSync } from "node:zlib";

/** Data that ships, and is no code. It is loaded when it is first needed. */
const DATA = ["config/word-vectors.txt"];

/** The committed sizes, in bytes. A change beyond `TOLERANCE` states its reason in `sizes.json`. */
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
  /** Bytes of each module: its share of the minified code, scaled to the gzipped size. */
  readonly modules: Readonly<Record<string, number>>;
}

/** Returns the size of the code that an entry file ships. `config` names the npm packages. */
export async function sizeOf(entry: string, config: string): Promise<Size> {
  const options = { config, more: ["--sourcemap=external"] };
  return await bundled([entry], options, async (folder) => {
    const files = await filesIn(folder);
    const code = await readFile(files.find((path) => path.endsWith(".js")) ?? "", "utf8");
    const map = JSON.parse(
      await readFile(files.find((path) => path.endsWith(".map")) ?? "", "utf8"),
    );
    const [gzipped, minified] = [zipped(code), new TextEncoder().encode(code).length];
    const modules = Object.fromEntries(
      [...charactersByModule(code, map)].sort(([, one], [, other]) => other - one)
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

/** Counts the characters of a bundle by the module that they come from. */
function charactersByModule(code: string, { sources, mappings }: SourceMap): Map<string, number> {
  const modules = sources.map((path) => /\/(?:src\/([a-z_]+)|(builtin))\//.exec(path))
    .map((found) => found?.[1] ?? found?.[2] ?? "the rest");
  const counted = new Map<string, number>();
  let source = 0;
  for (const [at, line] of mappings.split(";").entries()) {
    const length = code.split("\n", at + 1)[at]?.length ?? 0;
    let column = 0;
    const starts = line.split(",").filter(Boolean).map((segment) => {
      const [columns = 0, sourcesOn = 0] = numbersOf(segment);
      return [column += columns, source += sourcesOn] as const;
    });
    for (const [index, [start, from]] of starts.entries()) {
      const end = starts[index + 1]?.[0] ?? length;
      const name = modules[from] ?? "the rest";
      counted.set(name, (counted.get(name) ?? 0) + end - start);
    }
  }
  return counted;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** Reads the numbers of a segment of a source map: base64 VLQ. */
function numbersOf(segment: string): readonly number[] {
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

/** Returns the size of the npm packages that an entry file imports, unpacked. */
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
    const all = (await filesIn(localPath)).map(async (path) => (await stat(path)).size);
    sizes.set(name, (await Promise.all(all)).reduce((sum, size) => sum + size, 0));
  }
  const sorted = [...sizes].sort(([, one], [, other]) => other - one);
  const bytes = sorted.reduce((sum, [, size]) => sum + size, 0);
  return { packages: names.size, bytes, largest: Object.fromEntries(sorted.slice(0, 5)) };
}

/** Returns the size of the data that ships, unpacked. */
export async function dataSize(): Promise<number> {
  const sizes = DATA.map(async (path) => (await stat(new URL(`../${path}`, import.meta.url))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
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

async function bundled<T>(
  entries: readonly string[],
  { config, more = [] }: { readonly config: string; readonly more?: readonly string[] },
  measure: (folder: string) => Promise<T>,
): Promise<T> {
  const names = Object.keys(JSON.parse(await readFile(config, "utf8")).imports ?? {});
  const outside = [
    ...["npm:*", ...DATA.map((path) => `*/${path}`)],
    ...names.flatMap((name) => [name, `${name}/*`]),
  ];
  const folder = await mkdtemp(join(tmpdir(), "pml-size-"));
  try {
    const externals = outside.flatMap((name) => ["--external", name]);
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
