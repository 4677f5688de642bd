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

/** What the first call of a tool loads beside that. */
export const FIRST_CALL: readonly string[] = [
  ...START,
  "src/app/app_gateway.ts",
  "src/app/app_call_path.ts",
  "src/app/call_path.ts",
  "src/gateway/schemas.ts",
  "src/modules/builtins.ts",
  "src/sandbox/sandbox.ts",
];

/** What the package weighs. */
export interface Size {
  readonly gzipped: number;
  readonly minified: number;
  readonly budget: number;
  /** The bytes of each room: its share of the minified code, as if all of it were zipped alike. */
  readonly rooms: Readonly<Record<string, number>>;
}

/** Weighs what an entry file ships, with the configuration whose `imports` name the packages. */
export async function sizeOf(entry: string, config: string): Promise<Size> {
  const options = { config, more: ["--sourcemap=external"] };
  return await bundled([entry], options, async (folder) => {
    const files = await filesIn(folder);
    const code = await readFile(files.find((path) => path.endsWith(".js")) ?? "", "utf8");
    const map = JSON.parse(
      await readFile(files.find((path) => path.endsWith(".map")) ?? "", "utf8"),
    );
    const [gzipped, minified] = [zipped(code), new TextEncoder().encode(code).length];
    const rooms = Object.fromEntries(
      [...charactersByRoom(code, map)].sort(([, one], [, other]) => other - one)
        .map(([room, characters]) => [room, Math.round(characters * gzipped / minified)]),
    );
    return { gzipped, minified, budget: BUDGET, rooms };
  });
}

/** A source map, as far as it is read here. */
interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

/** Counts the characters of a bundle by the room that they come from. */
function charactersByRoom(code: string, { sources, mappings }: SourceMap): Map<string, number> {
  const rooms = sources.map((path) => /\/(?:src\/([a-z_]+)|(builtin))\//.exec(path))
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
      const room = rooms[from] ?? "the rest";
      counted.set(room, (counted.get(room) ?? 0) + end - start);
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

/** Tells a size in one line. */
export function tellSize({ gzipped, minified, budget }: Omit<Size, "rooms">): string {
  const verdict = gzipped < budget ? "within" : "beyond";
  return `${number(gzipped)} bytes gzipped (${number(minified)} minified), ` +
    `${verdict} the budget of ${number(budget)}`;
}

/** Tells sizes by name, a line each. */
export function tellRooms(rooms: Readonly<Record<string, number>>): string {
  return Object.entries(rooms).map(([name, size]) =>
    `  ${name.padEnd(32)} ${number(size).padStart(9)}`
  )
    .join("\n");
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
  const firstCall = await startSizeOf(FIRST_CALL, root);
  const npm = await installSizeOf(entry);
  if (Deno.args.includes("--json")) console.log(JSON.stringify({ ...size, start, firstCall, npm }));
  else {
    console.log(tellSize(size));
    console.log(`${number(start)} bytes of it are loaded before the first answer`);
    console.log(`${number(firstCall)} bytes are loaded when the first tool has answered`);
    console.log(tellRooms(size.rooms));
    console.log(`${npm.packages} packages of npm come with it: ${number(npm.bytes)} bytes`);
    console.log(tellRooms(npm.largest));
  }
  Deno.exitCode = size.gzipped < size.budget ? 0 : 1;
}

if (import.meta.main) await main();
