/**
 * Installs packages with uv, and finds their programs.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../../../core/errors.ts";
import { quoted } from "../../../core/json.ts";
import { namesInFolder } from "../../../io/path_info.ts";
import { readRegularText, textIfAny } from "../../../io/regular_file.ts";
import { noProgramError } from "./_npm.ts";
import type { Installer } from "./installer.ts";

/** Options with which uv uses no `uv.toml`, `pyproject.toml` or `.python-version`. */
const ISOLATION = ["--no-config", "--no-progress", "--color=never"];
const VENV = "venv";
const REQUIREMENTS = "requirements.txt";
const IS_WINDOWS = Deno.build.os === "windows";

/** Installs the packages of a `uvx` command, only from wheels, so that no build script runs. */
export const uv: Installer = {
  files: ({ spec, beside }) => ({ "requirements.in": [spec, ...beside, ""].join("\n") }),
  environment: {},
  refusals: /no (?:usable |matching )?wheels|source distribution|--no-build|building/i,
  hint: "PML runs no build script, and there is no wheel for this Python: name a version that " +
    "has one, another `--python`, or install it yourself and give its path",
  // Python installers write this file if a package was named by a URL instead of a name.
  findForeign: (folder) => {
    const direct = packagesOf(join(folder, VENV)).find(({ at }) =>
      namesInFolder(at).includes("direct_url.json")
    );
    return direct &&
      `${quoted(direct.packageName, 200)} comes from a URL, which is not one of your registries`;
  },
  // `requirements.txt` lists every wheel of each version, for all systems, with the hashes that uv
  // compares.
  contentOf: (folder) => {
    const listed = strongHashesIn(readRegularText(join(folder, REQUIREMENTS)));
    return packagesOf(join(folder, VENV)).every((one) => listed.has(idOf(one)))
      ? [...listed].map((each) => each.join(" ")).toSorted().join("\n")
      : undefined;
  },
  commands: ({ python }) => [
    // Relocatable, because the folder is moved when the installation is complete.
    [
      "venv",
      ...ISOLATION,
      "--relocatable",
      ...(python === undefined ? [] : ["--python", python]),
      VENV,
    ],
    [
      ...["pip", "compile", ...ISOLATION, "--no-build", "--python", VENV, "--universal"],
      ...[
        "--generate-hashes",
        "--no-header",
        "--no-annotate",
        "-o",
        REQUIREMENTS,
        "requirements.in",
      ],
    ],
    [
      ...["pip", "install", ...ISOLATION, "--no-build", "--python", VENV, "--verify-hashes"],
      // Copies all files and compiles bytecode now, so that the folder does not change later.
      ...["--link-mode=copy", "--compile-bytecode", "-r", REQUIREMENTS],
    ],
  ],
  programOf: async (folder, { name, bin }) => {
    const { version, programs } = readInstalled(join(folder, VENV), name);
    const only = programs.length === 1 ? programs[0] : undefined;
    const binName = bin ?? (programs.includes(name) ? name : only ?? name);
    const at = IS_WINDOWS ? join(VENV, "Scripts", `${binName}.exe`) : join(VENV, "bin", binName);
    const info = await Deno.stat(join(folder, at)).catch(() => undefined);
    if (info?.isFile) return { version, file: at };
    const hint = "Name one of its programs: uvx --from NAME PROGRAM";
    throw noProgramError({ name, expected: binName, has: programs, hint });
  },
};

/**
 * Reads the version and the programs of a package, from the files that every Python installer
 * writes.
 */
function readInstalled(
  venv: string,
  name: string,
): { readonly version: string; readonly programs: readonly string[] } {
  for (const { packageName, version, at } of packagesOf(venv)) {
    if (normalizedName(packageName) !== normalizedName(name)) continue;
    return { version, programs: scriptsIn(textIfAny(join(at, "entry_points.txt")) ?? "") };
  }
  throw new PmlError(
    "UPSTREAM_DOWN",
    `Cannot find ${quoted(name)} among the packages that uv installed`,
    {
      hint: "Check its name",
    },
  );
}

/** Returns the name, the version and the metadata folder of each installed package. */
function packagesOf(venv: string) {
  const lib = join(venv, IS_WINDOWS ? "Lib" : "lib");
  const pythons = IS_WINDOWS ? [""] : namesInFolder(lib);
  return pythons.flatMap((python) => {
    const packages = join(lib, python, "site-packages");
    return namesInFolder(packages).flatMap((entry) => {
      const [, packageName, version = ""] = /^(.+)-([^-]+)\.dist-info$/.exec(entry) ?? [];
      return packageName === undefined ? [] : [{ packageName, version, at: join(packages, entry) }];
    });
  });
}

/**
 * Returns the hashes of each version in a list of uv, by name and version. Leaves out versions
 * without strong hashes.
 */
function strongHashesIn(text: string): ReadonlyMap<string, string> {
  const lines = text.replace(/\\\r?\n/g, " ").matchAll(/^([\w.-]+)(?:\[.*\])?==(\S+)(.*)$/gm);
  return new Map([...lines].flatMap(([, packageName = "", version = "", rest = ""]) => {
    const hashes = rest.split("--hash=").slice(1).map((hash) => hash.trim());
    const isStrong = hashes.length > 0 &&
      hashes.every((hash) => /^sha256:[0-9a-f]{64}$/.test(hash));
    // guard: uv-content
    return isStrong ? [[idOf({ packageName, version }), hashes.toSorted().join(" ")]] : [];
  }));
}

function idOf(
  { packageName, version }: { readonly packageName: string; readonly version: string },
): string {
  return `${normalizedName(packageName)} ${version}`;
}

/**
 * Returns the common form of package names that differ only in case, dots, dashes and underscores.
 */
function normalizedName(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, "-");
}

function scriptsIn(text: string): readonly string[] {
  const [, scripts = ""] = /^\[console_scripts\]\s*$([^[]*)/m.exec(text) ?? [];
  return [...scripts.matchAll(/^\s*([^=\s#]+)\s*=/gm)].map(([, name = ""]) => name);
}
