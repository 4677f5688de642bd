/**
 * Finds the install scripts of npm packages, and runs those that the user approved.
 *
 * @module
 */

import { join } from "node:path";
import process from "node:process";
import { durationText } from "../../../core/amounts.ts";
import { PmlError } from "../../../core/errors.ts";
import { type JsonObject, objectOf, quoted, visibleLines } from "../../../core/json.ts";
import { parseJson } from "../../../core/parse_json.ts";
import type { Installing } from "../../../io/installing.ts";
import { infoAt } from "../../../io/place.ts";
import { readRegularText } from "../../../io/regular_file.ts";
import {
  confinedProgram,
  openPrivateFolder,
  type PrivateFolder,
} from "../../../sandbox/confined_program.ts";
import { type ProgramOptions, runProgram } from "../../../sandbox/process.ts";
import type { Program } from "../../../sandbox/program.ts";
import { type ScriptConfinement, scriptReach } from "./_script_reach.ts";

/** A package with scripts that npm would run when it installs the package. */
export interface ScriptedPackage {
  /** The identity: path, version and hash. */
  readonly id: string;
  /** Its path in the installation. The same version can be installed at several paths. */
  readonly path: string;
  /** The installed name and version. */
  readonly spec: string;
  /**
   * The hash of its archive, from the registry; "none" if it came in the archive of another
   * package.
   */
  readonly hash: string;
  readonly scripts: Readonly<Record<string, string>>;
}

const EVENTS = ["preinstall", "install", "postinstall"];
/** The user's npm settings that scripts use: how and from where the network is reached. */
const CARRIED =
  /^(?:(?:https?-)?proxy|noproxy|cafile|strict-ssl|disturl|nodedir|.+_binary_(?:host|mirror|site).*)$/;
const RUN_MS = 900_000;
const KEPT = 200_000;
const TAIL = 2_000;

/** Returns the packages of an installation that have install scripts. */
export function scriptedIn(folder: string): readonly ScriptedPackage[] {
  return packagesIn(folder).flatMap(([path, entry]) => {
    const { hasInstallScript, version, integrity = "none" } = entry;
    const isBuilt = infoAt(join(folder, path, "binding.gyp"))?.isFile === true;
    if (hasInstallScript !== true && !isBuilt) return [];
    // A package for another system was not installed.
    const own = objectIn(folder, path, "package.json");
    if (own === undefined) return [];
    const scripts: Record<string, string> = {};
    if (isBuilt && own.gypfile !== false) scripts.install = "node-gyp rebuild";
    for (const event of EVENTS) {
      const script = objectOf(own.scripts)[event];
      if (typeof script === "string") scripts[event] = script;
    }
    if (Object.keys(scripts).length === 0) return [];
    return [{
      id: `${path} ${version} ${integrity}`,
      path,
      spec: specOf(path, entry),
      hash: String(integrity),
      scripts,
    }];
  });
}

/** The options of running scripts. */
interface ScriptRunOptions extends Pick<ProgramOptions, "signal" | "groups"> {
  readonly npm: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly installing: Installing;
  readonly confining: ScriptConfinement;
}

/**
 * Returns the packages with install scripts, from the registry's metadata. They need not be
 * installed yet.
 */
export function announcedIn(folder: string): readonly string[] {
  const named = packagesIn(folder).filter(([, { hasInstallScript, os }]) =>
    // A package for another system is not installed.
    hasInstallScript === true && (!Array.isArray(os) || os.includes(process.platform))
  );
  return [...new Set(named.map(([path, entry]) => specOf(path, entry)))];
}

function specOf(path: string, { version }: JsonObject): string {
  return `${path.split("node_modules/").at(-1)}@${version}`;
}

/** Returns the entries of the lock file with their paths in the installation. */
export function packagesIn(folder: string): readonly (readonly [string, JsonObject])[] {
  const { packages } = objectIn(folder, "package-lock.json") ?? {};
  return Object.entries(objectOf(packages)).filter(([path]) => path !== "")
    .map(([path, entry]) => [path, objectOf(entry)]);
}

/** Returns a text, shown before an installation, that names packages whose scripts will not run. */
export function announcement(named: readonly string[]): string {
  return `${scriptsOf(named)}, which PML does not run by itself`;
}

function scriptsOf(specs: readonly string[]): string {
  const first = specs.slice(0, 5).map((spec) => quoted(spec)).join(", ");
  const more = specs.length > 5 ? ` and ${specs.length - 5} more` : "";
  return `${first}${more} ${specs.length === 1 ? "has" : "have"} install scripts`;
}

/** Runs the scripts of these packages with npm, as confined as this system can. */
export async function runScripts(
  scripted: readonly ScriptedPackage[],
  options: ScriptRunOptions,
): Promise<void> {
  const { installing, signal, groups, confining } = options;
  const specs = scripted.map(({ spec }) => spec);
  const args = [
    ...["rebuild", "--ignore-scripts=false", "--foreground-scripts", "--color=false"],
    // Newer versions of npm run only scripts that are allowed. The packages named here are allowed.
    ...["--dangerously-allow-all-scripts", "--", ...scripted.map(({ path }) => `./${path}`)],
  ];
  await using own = openPrivateFolder(confining.home, confining.workspace);
  const program = await scriptProgram({ ...options, args, own });
  const failed = (why: string, wrote: string) =>
    new PmlError("UPSTREAM_DOWN", `Cannot run the scripts of ${specs.join(", ")}: ${why}`, {
      hint: "They may need a compiler or the network",
      detail: { stderr: visibleLines(wrote.trim().slice(-TAIL), TAIL) },
    });
  const { code, stdout } = await runProgram(program, {
    signal,
    ms: RUN_MS,
    late: () => failed(`they took longer than ${durationText(RUN_MS)}`, installing.tail),
    maxBytes: KEPT,
    groups,
    onStderr: (text) => installing.hear(text),
  });
  if (code !== 0) throw failed(`npm ended with ${code}`, `${stdout}\n${installing.tail}`);
}

/**
 * Returns the npm command that runs scripts, with private folders and without the variables that
 * are only for installers.
 */
async function scriptProgram(
  { npm: file, args, cwd, env: all, own, confining, ...run }: ScriptRunOptions & {
    readonly args: readonly string[];
    readonly own: PrivateFolder;
  },
): Promise<Program> {
  // Scripts do not need the tokens of registries.
  const { NPM_TOKEN: _, NODE_AUTH_TOKEN: __, ...env } = all;
  const program = { file, args, cwd, env, kept: true };
  const { layer } = confining;
  if (layer.kind === "none") return program;
  const listing = { file, args: ["config", "list", "--json", "--loglevel=silent"], cwd, env: all };
  const { stdout } = await runProgram(listing, { ...run, ms: RUN_MS, maxBytes: KEPT });
  const settings = Object.entries(objectOf(parseJson(stdout || "{}")))
    .filter(([key, value]) => CARRIED.test(key) && value !== null && value !== "")
    .map(([key, value]) => [`npm_config_${key.replaceAll("-", "_")}`, String(value)] as const);
  const { NPM_CONFIG_USERCONFIG: ___, ...rest } = env;
  const places = {
    HOME: own.denoDir,
    TMPDIR: own.temp,
    NPM_CONFIG_CACHE: join(own.denoDir, "npm"),
  };
  const write = [cwd, own.denoDir, own.temp];
  const carried = Object.fromEntries(settings);
  const more = [carried.npm_config_cafile, carried.npm_config_nodedir].filter(Boolean) as string[];
  const reach = scriptReach(confining, { path: env.PATH, write, more });
  const confined = { ...program, env: { ...rest, ...places, ...carried } };
  return confinedProgram(confined, { layer, reach });
}

/** Returns a text for clients that cannot decide. It names the packages that wait for the user. */
export function scriptsHint(
  server: string,
  waiting: readonly ScriptedPackage[],
): string | undefined {
  if (waiting.length === 0) return undefined;
  return `${scriptsOf(waiting.map(({ spec }) => spec))} that did not run: if it needs them, ` +
    `the user can run \`pml install ${server}\` on a terminal`;
}

/** Reads a JSON object; undefined if the file does not exist, or is not JSON. */
function objectIn(...path: readonly string[]): JsonObject | undefined {
  try {
    return objectOf(parseJson(readRegularText(join(...path))));
  } catch {
    return undefined;
  }
}
