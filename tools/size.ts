/**
 * Weighs the package as it ships: bundled, minified, npm packages left out, gzipped.
 *
 * @module
 */

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { gzipSync } from "node:zlib";

/** How many bytes the package may have. */
export const BUDGET = 50_000;

/** What the package weighs. */
export interface Size {
  readonly gzipped: number;
  readonly minified: number;
  readonly budget: number;
}

/** Weighs what an entry file ships, with the configuration whose `imports` name the packages. */
export async function sizeOf(entry: string, config: string): Promise<Size> {
  const names = Object.keys(JSON.parse(await readFile(config, "utf8")).imports ?? {});
  const outside = ["npm:*", ...names.flatMap((name) => [name, `${name}/*`])];
  const folder = await mkdtemp(join(tmpdir(), "pml-size-"));
  try {
    const output = join(folder, "bundle.js");
    const externals = outside.flatMap((name) => ["--external", name]);
    const kind = ["--minify", "--platform", "deno", "--config", config];
    await run(["bundle", ...kind, ...externals, "--output", output, entry]);
    const code = await readFile(output);
    return {
      gzipped: gzipSync(code, { level: 9 }).length,
      minified: code.length,
      budget: BUDGET,
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Tells a size in one line. */
export function tellSize({ gzipped, minified, budget }: Size): string {
  const number = (value: number) => value.toLocaleString("en-US");
  const verdict = gzipped < budget ? "within" : "beyond";
  return `${number(gzipped)} bytes gzipped (${number(minified)} minified), ` +
    `${verdict} the budget of ${number(budget)}`;
}

async function run(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command(process.execPath, { args: [...args] })
    .output();
  if (success) return;
  throw new Error(`deno ${args[0]} failed: ${new TextDecoder().decode(stderr)}`);
}

if (import.meta.main) {
  const file = (name: string) => decodeURIComponent(new URL(name, import.meta.url).pathname);
  const size = await sizeOf(file("../mod.ts"), file("../deno.json"));
  console.log(Deno.args.includes("--json") ? JSON.stringify(size) : tellSize(size));
  Deno.exitCode = size.gzipped < size.budget ? 0 : 1;
}
