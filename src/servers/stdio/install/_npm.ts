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
 * Keeps npm from starting any program. An older npm lets git fetch a repository that a package
 * names, and installs it with the settings of that repository, even with scripts turned off.
 */
const ALONE = `data:text/javascript,${
  encodeURIComponent(
    "import c from'node:child_process';import{syncBuiltinESMExports as s}from'node:module';" +
      "c.ChildProcess.prototype.spawn=c.spawnSync=c.execSync=c.execFileSync=()=>{" +
      "throw Error('PML lets npm start no program')};s()",
  )
}`;
/** The host that npm replaces by the configured registry. No similar host counts. */
const USUAL_HOST = ["registry", "npmjs", "org"].join(".");

/** A hash without known collisions. npm compares the strongest hash that it has. */
const STRONG = /^sha(?:512|384|256)-/;

/**
 * Installs the packages of an `npx` command. No script of any package runs, and each package must
 * come from a registry.
 */
export const npm: Installer = {
  files: () => ({ "package.json": '{"private":true}' }),
  environment: { NODE_OPTIONS: `--import=${ALONE}` },
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
      // npm then reports each file that it fetches.
      ...["--loglevel=http", "--color=false", ...settings],
    ];
    return [
      // First only the metadata: the registry says which versions have scripts, and no package is
      // fetched yet.
      [...install, "--package-lock-only", "--", spec, ...beside],
      [...install, "--", spec, ...beside],
      ["config", "list", "--json", "--loglevel=silent", ...settings],
    ];
  },
  foreign: (folder, [, , settings = ""]) => {
    const packages = packagesIn(folder);
    if (packages.length === 0) {
      return "npm wrote no lock file that says where it came from (npm 7 and newer do)";
    }
    const registries = registriesIn(objectOf(parseJson(settings)));
    for (const [path, entry] of packages) {
      const { resolved, integrity, inBundle } = entry;
      // A package that came in the archive of another is covered by that archive's hash.
      if (inBundle === true && resolved === undefined) continue;
      // guard: npm-origin
      if (!isOf(registries, resolved)) {
        const from = quoted(String(resolved ?? "nowhere"), 300);
        return `${quoted(path, 200)} comes from ${from}, which is not one of your registries`;
      }
      // guard: npm-hash
      if (typeof integrity !== "string") return `${quoted(path, 200)} comes without a hash`;
    }
    return undefined;
  },
  // The lock lists the packages for every system, with the hashes that npm compared. A short hash
  // binds nothing.
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
    throw noProgram({ name, expected: bin ?? own, has: Object.keys(programs), hint });
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

function isOf(registries: readonly URL[], resolved: unknown): boolean {
  const url = URL.parse(String(resolved));
  if (url === null) return false;
  return url.protocol === "https:" && url.host === USUAL_HOST ||
    registries.some(({ host, protocol }) =>
      url.host === host && ["https:", protocol].includes(url.protocol)
    );
}

/** Returns the error of a package that lacks the program to start. */
export function noProgram({ name, expected, has, hint }: {
  readonly name: string;
  readonly expected: string;
  readonly has: readonly string[];
  readonly hint: string;
}): PmlError {
  const message = `Cannot start ${quoted(name)}: it has no program ${quoted(expected)}`;
  return new PmlError("UPSTREAM_DOWN", message, { hint, detail: { programs: has.slice(0, 20) } });
}
