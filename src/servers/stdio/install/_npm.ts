/**
 * Installs packages with npm, and finds their programs.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../../../core/errors.ts";
import { isObject, type JsonObject, objectOf, quoted } from "../../../core/json.ts";
import { parseJson } from "../../../core/parse_json.ts";
import { readRegularText } from "../../../io/regular_file.ts";
import { npmPackage } from "../_package_command.ts";
import { packagesIn } from "./_scripts.ts";
import type { Installer } from "./installer.ts";

/**
 * A module that keeps npm from starting any program. Without it, older versions of npm would run
 * git to fetch a repository that a package names, and would install the repository with the
 * settings in it, even if scripts are turned off.
 */
const NO_CHILD_PROCESS = `data:text/javascript,${
  encodeURIComponent(
    "import c from'node:child_process';import{syncBuiltinESMExports as s}from'node:module';" +
      "c.ChildProcess.prototype.spawn=c.spawnSync=c.execSync=c.execFileSync=()=>{" +
      "throw Error('PML lets npm start no program')};s()",
  )
}`;
/**
 * The host in lock files that npm replaces by the configured registry. npm replaces no other host.
 */
const DEFAULT_HOST = ["registry", "npmjs", "org"].join(".");

/** Matches hashes without known collisions. npm compares the strongest hash of a package. */
const STRONG = /^sha(?:512|384|256)-/;

/**
 * Installs the packages of an `npx` command. No script of any package runs, and each package must
 * come from a registry.
 */
export const npm: Installer = {
  files: () => ({ "package.json": '{"private":true}' }),
  environment: { NODE_OPTIONS: `--import=${NO_CHILD_PROCESS}` },
  refusals: /EALLOW|PML lets npm start/,
  hint: "PML installs only packages of the registries that you configured: name another " +
    "version, or install it yourself and give its path",
  commands: ({ spec, beside, settings }) => {
    const install = [
      ...["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"],
      // The user's settings may turn off the options that make npm write the lock file.
      ...["--save", "--no-dry-run"],
      ...["--allow-git=none", "--allow-file=none", "--allow-directory=none"],
      // The lock file is checked afterwards.
      ...["--package-lock", "--lockfile-version=3", "--no-omit-lockfile-registry-resolved"],
      // With these options npm reports each file that it fetches.
      ...["--loglevel=http", "--color=false", ...settings],
    ];
    return [
      // The first command fetches only metadata, which states which versions have scripts.
      [...install, "--package-lock-only", "--", spec, ...beside],
      [...install, "--", spec, ...beside],
      ["config", "list", "--json", "--loglevel=silent", ...settings],
    ];
  },
  findForeign: (folder, [, , settings = ""]) => {
    const packages = packagesIn(folder);
    if (packages.length === 0) {
      return "npm wrote no lock file with the sources of the packages (npm 7 and newer do)";
    }
    const registries = registriesIn(objectOf(parseJson(settings)));
    for (const [path, entry] of packages) {
      const { resolved, integrity, inBundle } = entry;
      // The hash of an archive also covers the packages that are bundled in it.
      if (inBundle === true && resolved === undefined) continue;
      // guard: npm-origin
      if (!isFromRegistry(registries, resolved)) {
        const from = quoted(String(resolved ?? "nowhere"), 300);
        return `${quoted(path, 200)} comes from ${from}, which is not one of your registries`;
      }
      // guard: npm-hash
      if (typeof integrity !== "string") return `${quoted(path, 200)} comes without a hash`;
    }
    return undefined;
  },
  // The lock file lists the packages for every system, with the hashes that npm compared. A hash
  // with known collisions (SHA-1) does not identify the content.
  contentOf: (folder) => {
    const archives = packagesIn(folder).filter(([, { resolved }]) => resolved !== undefined);
    if (!archives.every(([, { integrity }]) => STRONG.test(String(integrity)))) return undefined;
    return archives.map(([path, { version, integrity }]) => `${path} ${version} ${integrity}\n`)
      .toSorted().join("");
  },
  programOf: (folder, { name, bin, beside }) => {
    const { version } = packageIn(folder, name);
    const programs = programsIn(folder, name);
    const own = name.split("/").at(-1) ?? "";
    const only = Object.keys(programs).length === 1 ? Object.values(programs)[0] : undefined;
    const others = beside.map((spec) => programsIn(folder, npmPackage(spec)?.name ?? ""));
    const file = bin === undefined
      ? only ?? programs[own]
      : [programs, ...others].find((each) => Object.hasOwn(each, bin))?.[bin];
    if (file !== undefined) return { version: String(version), file };
    const hint = "Name one of its programs: npx -y --package NAME PROGRAM";
    throw noProgramError({ name, expected: bin ?? own, has: Object.keys(programs), hint });
  },
};

function packageIn(folder: string, name: string): JsonObject {
  return objectOf(parseJson(readRegularText(join(folder, "node_modules", name, "package.json"))));
}

/** Returns the files of a package's programs by their names. */
function programsIn(folder: string, name: string): Readonly<Record<string, string>> {
  const { bin } = packageIn(folder, name);
  const programs = isObject(bin) ? bin : { [name.split("/").at(-1) ?? ""]: bin };
  const files = Object.entries(programs).flatMap(([program, file]) =>
    typeof file === "string" && !file.split(/[\\/]/).includes("..")
      ? [[program, join("node_modules", name, file)]]
      : []
  );
  return Object.fromEntries(files);
}

/** Returns the registries that the user configured, also those for one scope. */
function registriesIn(settings: JsonObject): readonly URL[] {
  const urls = Object.entries(settings).filter(([key]) => /(?:^|:)registry$/.test(key));
  return urls.flatMap(([, url]) => URL.parse(String(url)) ?? []);
}

function isFromRegistry(registries: readonly URL[], resolved: unknown): boolean {
  const url = URL.parse(String(resolved));
  if (url === null) return false;
  return url.protocol === "https:" && url.host === DEFAULT_HOST ||
    registries.some(({ host, protocol }) =>
      url.host === host && ["https:", protocol].includes(url.protocol)
    );
}

/** Returns the error for a package without the program to start. */
export function noProgramError({ name, expected, has, hint }: {
  readonly name: string;
  readonly expected: string;
  readonly has: readonly string[];
  readonly hint: string;
}): PmlError {
  const message = `Cannot start ${quoted(name)}: it has no program ${quoted(expected)}`;
  return new PmlError("UPSTREAM_DOWN", message, { hint, detail: { programs: has.slice(0, 20) } });
}
