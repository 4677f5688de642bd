/**
 * Finds the install scripts of packages that wait for the user's decision. It runs none of them.
 *
 * @module
 */

import type { WrittenCommand } from "../_package_command.ts";
import type { InstallRecord } from "./_record.ts";
import { scriptedIn, type ScriptedPackage } from "./_scripts.ts";
import { installedOf } from "./installed.ts";

/**
 * Returns the packages of a command that are installed and have install scripts that did not run.
 */
export function waitingScripts(
  written: WrittenCommand,
  home: string,
  version: string | undefined,
): readonly ScriptedPackage[] {
  const installed = installedOf(written, home, version);
  return installed === undefined || installed.asked.isScriptless
    ? []
    : waitingIn(installed.folder, installed.known);
}

/** Returns the packages in a folder whose install scripts did not run. */
export function waitingIn(folder: string, { ran = [] }: InstallRecord): readonly ScriptedPackage[] {
  return scriptedIn(folder).filter(({ id }) => !ran.includes(id));
}
