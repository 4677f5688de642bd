/**
 * Finds install scripts that wait for the user's decision. Runs no scripts.
 *
 * @module
 */

import type { WrittenCommand } from "../_package_command.ts";
import type { InstallRecord } from "./_record.ts";
import { findScriptedPackages, type ScriptedPackage } from "./_scripts.ts";
import { findInstalled } from "./installed.ts";

/**
 * Returns the packages of a command that are installed and have install scripts that did not run.
 */
export function waitingScripts(
  written: WrittenCommand,
  home: string,
  version: string | undefined,
): readonly ScriptedPackage[] {
  const installed = findInstalled(written, home, version);
  return installed === undefined || installed.command.isScriptless
    ? []
    : findWaitingScripts(installed.folder, installed.record);
}

/** Returns the packages in a folder whose install scripts did not run. */
export function findWaitingScripts(
  folder: string,
  { ran = [] }: InstallRecord,
): readonly ScriptedPackage[] {
  return findScriptedPackages(folder).filter(({ id }) => !ran.includes(id));
}
