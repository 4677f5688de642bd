/**
 * Installs packages with uv, and finds their programs.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../../../core/errors.ts";
import { quoted } from "../../../core/json.ts";
import { namesInFolder } from "../../../io/place.ts";
import { readRegularText, textIfAny } from "../../../io/regular_file.ts";
import { noProgram } from "./_npm.ts";
import type { Installer } from "./installer.ts";

/** No `uv.toml`, `pyproject.toml` or `.python-version` of any folder is used. */
const APART = ["--no-config", "--no-progress", "--color=never"];
const VENV = "venv";
const LIST = "requirements.txt";
const IS_WINDOWS = Deno.build.os === "windows";

/** Installs the packages of a `uvx` command, only from wheels, so that no build script runs. */
export const uv: Installer = {
  files: ({ spec, beside }) => ({ "requirements.in": [spec, ...beside, ""].join("\n") }),
  environment: {},
  refusals: /no (?:usable |matching )?wheels|source distribution|--no-build|building/i,
  hint: "PML runs no build script, and there is no wheel for this Python: name a version that " +
    "has one, another `--python`, or install it yourself and give its path",
  // Python installers write this file if a package was named by a URL instead of a name.
  foreign: (folder) => {
    const direct = packagesOf(join(folder, VENV)).find(({ at }) =>
      namesInFolder(at).includes("direct_url.json")
    );
    return direct &&
      `${quoted(direct.whose, 200)} comes from a URL, which is not one of your registries`;
  },
  // The list names every wheel of each version, for all systems, with the hashes that uv compares.
  contentOf: (folder) => {
    const listed = listedIn(readRegularText(join(folder, LIST)));
    return packagesOf(join(folder, VENV)).every((one) => listed.has(idOf(one)))
      ? [...listed].map((each) => each.join(" ")).toSorted().join("\n")
      : undefined;
  },
  commands: ({ python }) => [
    // Relocatable, because it is moved when it is complete.
    [
      "venv",
      ...APART,
      "--relocatable",
      ...(python === undefined ? [] : ["--python", python]),
      VENV,
    ],
    [
      ...["pip", "compile", ...APART, "--no-build", "--python", VENV, "--universal"],
      ...["--generate-hashes", "--no-header", "--no-annotate", "-o", LIST, "requirements.in"],
    ],
    [
      ...["pip", "install", ...APART, "--no-build", "--python", VENV, "--verify-hashes"],
      // Copies of all files, and bytecode now, so that the folder does not change later.
      ...["--link-mode=copy", "--compile-bytecode", "-r", LIST],
    ],
  ],
  programOf: async (folder, { name, bin }) => {
    const { version, programs } = installed(join(folder, VENV), name);
    const only = programs.length === 1 ? programs[0] : undefined;
    const binName = bin ?? (programs.includes(name) ? name : only ?? name);
    const at = IS_WINDOWS ? join(VENV, "Scripts", `${binName}.exe`) : join(VENV, "bin", binName);
    const info = await Deno.stat(join(folder, at)).catch(() => undefined); // there is none
    if (info?.isFile) return { version, file: at };
    const hint = "Name one of its programs: uvx --from NAME PROGRAM";
    throw noProgram({ name, expected: binName, has: programs, hint });
  },
};

/**
 * Reads the version and the programs of a package, from the files that every Python installer
 * writes.
 */
function installed(
  venv: string,
  name: string,
): { readonly version: string; readonly programs: readonly string[] } {
  for (const { whose, version, at } of packagesOf(venv)) {
    if (plain(whose) !== plain(name)) continue;
    return { version, programs: scriptsIn(textIfAny(join(at, "entry_points.txt")) ?? "") };
  }
  throw new PmlError("UPSTREAM_DOWN", `Cannot find ${quoted(name)} in what uv installed`, {
    hint: "Check its name",
  });
}

/** Returns the name, the version and the metadata folder of each installed package. */
function packagesOf(venv: string) {
  const lib = join(venv, IS_WINDOWS ? "Lib" : "lib");
  const pythons = IS_WINDOWS ? [""] : namesInFolder(lib);
  return pythons.flatMap((python) => {
    const packages = join(lib, python, "site-packages");
    return namesInFolder(packages).flatMap((entry) => {
      const [, whose, version = ""] = /^(.+)-([^-]+)\.dist-info$/.exec(entry) ?? [];
      return whose === undefined ? [] : [{ whose, version, at: join(packages, entry) }];
    });
  });
}

/** Returns the hashes of each version in a list of uv; of none that has no hash, or a weak one. */
function listedIn(text: string): ReadonlyMap<string, string> {
  const lines = text.replace(/\\\r?\n/g, " ").matchAll(/^([\w.-]+)(?:\[.*\])?==(\S+)(.*)$/gm);
  return new Map([...lines].flatMap(([, whose = "", version = "", rest = ""]) => {
    const hashes = rest.split("--hash=").slice(1).map((hash) => hash.trim());
    const isStrong = hashes.length > 0 &&
      hashes.every((hash) => /^sha256:[0-9a-f]{64}$/.test(hash));
    // guard: uv-content
    return isStrong ? [[idOf({ whose, version }), hashes.toSorted().join(" ")]] : [];
  }));
}

function idOf({ whose, version }: { readonly whose: string; readonly version: string }): string {
  return `${plain(whose)} ${version}`;
}

/**
 * Returns the common form of package names that differ only in case, dots, dashes and underscores.
 */
function plain(name: string): string {
  return name.toLowerCase().replace(/[-_.]+/g, "-");
}

function scriptsIn(text: string): readonly string[] {
  const [, scripts = ""] = /^\[console_scripts\]\s*$([^[]*)/m.exec(text) ?? [];
  return [...scripts.matchAll(/^\s*([^=\s#]+)\s*=/gm)].map(([, name = ""]) => name);
}
