/**
 * What PML has npm do, and where it finds the program of a package then.
 *
 * @module
 */

import { join } from "node:path";
import { PmlError } from "../core/errors.ts";
import { isObject, quoted } from "../core/json.ts";
import { readRegularText } from "../core/regular_file.ts";
import type { Installer } from "./installs.ts";

/** Installs what `npx` names: no script of any package runs. */
export const npm: Installer = {
  files: { "package.json": '{"private":true}' },
  commands: ({ spec }) => [[
    ...["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"],
    // It tells of each file that it fetches.
    ...["--loglevel=http", "--color=false", "--", spec],
  ]],
  programOf: (folder, { name, bin }) => {
    const at = join("node_modules", name);
    const said: unknown = JSON.parse(readRegularText(join(folder, at, "package.json")));
    const { version, bin: bins } = isObject(said) ? said : {};
    const own = name.split("/").at(-1) ?? "";
    const programs: Record<string, unknown> = isObject(bins) ? bins : { [own]: bins };
    const only = Object.keys(programs).length === 1 ? Object.values(programs)[0] : undefined;
    const file = bin === undefined ? only ?? programs[own] : programs[bin];
    if (typeof file === "string" && !file.split(/[\\/]/).includes("..")) {
      return { version: String(version), file: join(at, file) };
    }
    const hint = "Name one of its programs: npx -y --package NAME PROGRAM";
    throw noProgram({ name, wanted: bin ?? own, has: Object.keys(programs), hint });
  },
};

/** Makes the error of a package that does not have the program that is to be started. */
export function noProgram({ name, wanted, has, hint }: {
  readonly name: string;
  readonly wanted: string;
  readonly has: readonly string[];
  readonly hint: string;
}): PmlError {
  const message = `Cannot start ${quoted(name)}: it has no program ${quoted(wanted)}`;
  return new PmlError("UPSTREAM_DOWN", message, { hint, detail: { programs: has.slice(0, 20) } });
}
