/**
 * Finds the install scripts of npm packages, and runs those that the user approved.
 *
 * @module
 */

import { join } from "node:path";
import { durationText } from "../../../core/amounts.ts";
import { PmlError } from "../../../core/errors.ts";
import { type JsonObject, objectOf, quoted, visibleLines } from "../../../core/json.ts";
import { parseJson } from "../../../core/parse_json.ts";
import type { InstallProgress } from "../../../io/install_progress.ts";
import { infoAt } from "../../../io/path_info.ts";
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
  /** The identity: path, version and hash, with spaces between them. */
  readonly id: string;
  /** Its path in the installation. The same version can be installed at several paths. */
  readonly path: string;
  /** The installed name and version. */
  readonly spec: string;
  /**
   * The hash of its archive, from the registry; "none" for a package that is bundled in the archive
   * of another one.
   */
  readonly hash: string;
  readonly scripts: Readonly<Record<string, string>>;
}

const EVENTS = ["preinstall", "install", "postinstall"];
/** Matches the user's npm settings that scripts get: those for the network and for downloads. */
const CARRIED_SETTING =
  /^(?:(?:https?-)?proxy|noproxy|cafile|strict-ssl|disturl|nodedir|.+_binary_(?:host|mirror|site).*)$/;
/** How long scripts may run, in milliseconds. */
const RUN_MS = 900_000;
/** The maximum length of the output of scripts, in bytes. */
const OUTPUT_MAX = 200_000;
/** The maximum length of the end of the output that an error contains, in characters. */
const TAIL_MAX = 2_000;

/** Returns the packages of an installation that have install scripts. `folder` contains it. */
export function findScriptedPackages(folder: string): readonly ScriptedPackage[] {
  return packagesIn(folder).flatMap(([path, entry]) => {
    const { hasInstallScript, version, integrity = "none" } = entry;
    const hasBindingFile = infoAt(join(folder, path, "binding.gyp"))?.isFile === true;
    if (hasInstallScript !== true && !hasBindingFile) return [];
    // A package for another system was not installed.
    const own = objectIn(folder, path, "package.json");
    if (own === undefined) return [];
    const scripts: Record<string, string> = {};
    if (hasBindingFile && own.gypfile !== false) scripts.install = "node-gyp rebuild";
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

/**
 * Returns the specs of the packages in the lock file that have install scripts according to the
 * registry's metadata. The packages need not be installed yet.
 */
export function findAnnouncedPackages(folder: string): readonly string[] {
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
  return `${scriptsText(named)}, which PML does not run by itself`;
}

function scriptsText(specs: readonly string[]): string {
  const first = specs.slice(0, 5).map((spec) => quoted(spec)).join(", ");
  const more = specs.length > 5 ? ` and ${specs.length - 5} more` : "";
  return `${first}${more} ${specs.length === 1 ? "has" : "have"} install scripts`;
}

/** Runs install scripts with npm. Confines them if this system has a layer. */
export class ScriptRun {
  readonly #npm: Program;
  readonly #confinement: ScriptConfinement;
  readonly #bounds: Pick<ProgramOptions, "signal" | "groups">;

  /** `npm` runs in the folder of the installation, with the variables of installers. */
  constructor(
    npm: Program,
    confinement: ScriptConfinement,
    bounds: Pick<ProgramOptions, "signal" | "groups">,
  ) {
    this.#npm = npm;
    this.#confinement = confinement;
    this.#bounds = bounds;
  }

  /** Runs the scripts of these packages. */
  async run(scripted: readonly ScriptedPackage[], installing: InstallProgress): Promise<void> {
    const specs = scripted.map(({ spec }) => spec);
    const args = [
      ...["rebuild", "--ignore-scripts=false", "--foreground-scripts", "--color=false"],
      // Newer versions of npm run only scripts that are allowed. The packages named here are
      // allowed.
      ...["--dangerously-allow-all-scripts", "--", ...scripted.map(({ path }) => `./${path}`)],
    ];
    const { home, workspace } = this.#confinement;
    await using own = openPrivateFolder(home, workspace);
    const program = await this.#program(args, own);
    const failed = (why: string, wrote: string) =>
      new PmlError("UPSTREAM_DOWN", `Cannot run the scripts of ${specs.join(", ")}: ${why}`, {
        hint: "They may need a compiler or the network",
        detail: { stderr: visibleLines(wrote.trim().slice(-TAIL_MAX), TAIL_MAX) },
      });
    const { code, stdout } = await runProgram(program, {
      ...this.#bounds,
      ms: RUN_MS,
      late: () => failed(`they took longer than ${durationText(RUN_MS)}`, installing.tail),
      maxBytes: OUTPUT_MAX,
      onStderr: (text) => installing.addOutput(text),
    });
    if (code !== 0) throw failed(`npm ended with ${code}`, `${stdout}\n${installing.tail}`);
  }

  /**
   * Returns the npm command that runs scripts, with private folders and without the variables that
   * are only for installers.
   */
  async #program(args: readonly string[], own: PrivateFolder): Promise<Program> {
    const { cwd, env: all } = this.#npm;
    // Scripts do not need the tokens of registries.
    const { NPM_TOKEN: _, NODE_AUTH_TOKEN: __, ...env } = all;
    const program = { ...this.#npm, args, env, hasKeeper: true };
    const { layer } = this.#confinement;
    if (layer.kind === "none") return program;
    const listing = { ...this.#npm, args: ["config", "list", "--json", "--loglevel=silent"] };
    const { stdout } = await runProgram(listing, {
      ...this.#bounds,
      ms: RUN_MS,
      maxBytes: OUTPUT_MAX,
    });
    const settings = Object.entries(objectOf(parseJson(stdout || "{}")))
      .filter(([key, value]) => CARRIED_SETTING.test(key) && value !== null && value !== "")
      .map(([key, value]) => [`npm_config_${key.replaceAll("-", "_")}`, String(value)] as const);
    const { NPM_CONFIG_USERCONFIG: ___, ...rest } = env;
    const places = {
      HOME: own.denoDir,
      TMPDIR: own.temp,
      NPM_CONFIG_CACHE: join(own.denoDir, "npm"),
    };
    const write = [cwd, own.denoDir, own.temp];
    const carried = Object.fromEntries(settings);
    const more = [carried.npm_config_cafile, carried.npm_config_nodedir]
      .filter(Boolean) as string[];
    const reach = scriptReach(this.#confinement, { path: env.PATH, write, more });
    const confined = { ...program, env: { ...rest, ...places, ...carried } };
    return confinedProgram(confined, { layer, reach });
  }
}

/**
 * Returns a hint for clients that names the packages with scripts; undefined if there are none.
 * Clients cannot approve scripts, so the hint names the command with which the user can.
 */
export function scriptsHint(
  server: string,
  waiting: readonly ScriptedPackage[],
): string | undefined {
  if (waiting.length === 0) return undefined;
  return `${scriptsText(waiting.map(({ spec }) => spec))} that did not run: if it needs them, ` +
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
