/**
 * `deno task npm`: makes the package for users without Deno. It contains the published files as
 * JavaScript, because Deno runs no TypeScript from `node_modules`; npm installs Deno and the packages
 * that PML imports.
 *
 * @module
 */

import { init, parse } from "es-module-lexer";
import { chmod, copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import process from "node:process";
import { publishedFiles } from "../tests/kit/published.ts";

const ROOT = decodeURIComponent(new URL("..", import.meta.url).pathname);
const STARTER = "bin/pml.cjs";
/** Deno reads these from no package of npm. */
const LEFT_OUT: readonly string[] = ["deno.json", "deno.lock"];

/** What `deno.json` says of PML. */
interface Settings {
  readonly name: string;
  readonly version: string;
  readonly license: string;
  readonly imports: Readonly<Record<string, string>>;
}

/** Makes the package in a folder, whose content it replaces. */
export async function makePackage(folder: string): Promise<void> {
  const settings: Settings = JSON.parse(await readFile(join(ROOT, "deno.json"), "utf8"));
  await rm(folder, { recursive: true, force: true });
  const files = (await publishedFiles()).filter((path) => !LEFT_OUT.includes(path));
  const sources = files.filter((path) => /(?<!\.d)\.ts$/.test(path));
  await transpile(sources, folder);
  const used = new Set<string>();
  for (const path of sources) {
    const { code, packages } = await resolved(join(folder, named(path)), settings);
    await writeFile(join(folder, named(path)), code);
    for (const name of packages) used.add(name);
  }
  const others = files.filter((path) => !sources.includes(path)).map((path) => [path, path]);
  for (const [from = "", to = ""] of [...others, ["tools/npm/pml.cjs", STARTER]]) {
    await mkdir(dirname(join(folder, to)), { recursive: true });
    await copyFile(join(ROOT, from), join(folder, to));
  }
  await chmod(join(folder, STARTER), 0o755);
  const changes = newestIn(await readFile(join(ROOT, "CHANGELOG.md"), "utf8"));
  const manifest = { ...manifestOf(settings, [...used].sort()), changes };
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Returns the changelog of the newest version as plain text, which `pml update` shows. */
export function newestIn(changelog: string): string {
  const [, newest = ""] = changelog.split(/^## .*$/m);
  return newest.replace(/^### (.*)$/gm, "$1:").trim();
}

/** Returns the name that a file has in the package. */
export function named(path: string): string {
  return path.replace(/(?<!\.d)\.ts$/, ".js");
}

async function transpile(sources: readonly string[], folder: string): Promise<void> {
  const { success, stderr } = await new Deno.Command(process.execPath, {
    args: ["transpile", "--quiet", "--no-check", "--outdir", folder, ...sources],
    cwd: ROOT,
  }).output();
  if (!success) throw new Error(`Cannot transpile: ${new TextDecoder().decode(stderr)}`);
}

/** Returns the code of a module with the names that files have in the package. */
async function resolved(
  path: string,
  { imports }: Settings,
): Promise<{ readonly code: string; readonly packages: readonly string[] }> {
  await init;
  const before = await readFile(path, "utf8");
  const packages: string[] = [];
  let [code, copied] = ["", 0];
  for (const { specifier, start, end, type } of parse(before)[0]) {
    if (!specifier || specifier.startsWith("node:")) continue;
    if (specifier.startsWith(".")) {
      // The range of a dynamic import includes the quotes.
      const name = type === "dynamic" ? JSON.stringify(named(specifier)) : named(specifier);
      code += before.slice(copied, start) + name;
      copied = end;
      continue;
    }
    const known = Object.keys(imports)
      .find((key) => specifier === key || specifier.startsWith(`${key}/`));
    if (known === undefined) throw new Error(`${path} imports "${specifier}", which is unknown`);
    packages.push(known);
  }
  return { code: code + before.slice(copied), packages };
}

function manifestOf(
  { name, version, license, imports }: Settings,
  used: readonly string[],
): object {
  const versions = used.map((key) => [key, imports[key]?.replace(/^npm:.+@/, "")]);
  return {
    ...{ name, version, license },
    description: "One MCP server between your AI client and every tool",
    keywords: ["mcp", "mcp-server", "gateway", "deno"],
    type: "module",
    bin: { pml: STARTER },
    engines: { node: ">=18" },
    // Tests hold the Deno that runs here to be the one that the pages name.
    dependencies: { ...Object.fromEntries(versions), deno: Deno.version.deno },
  };
}

if (import.meta.main) {
  const folder = join(ROOT, "dist", "npm");
  await makePackage(folder);
  console.log(`Made ${folder}; \`npm publish ${folder}\` releases it`);
}
