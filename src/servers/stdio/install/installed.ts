/**
 * Finds the installed packages of servers, without installing or starting anything.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../../../core/hash.ts";
import { type PackageCommand, packageCommand, type WrittenCommand } from "../_package_command.ts";
import { type InstalledPackage, packageOf, readRecord } from "./_record.ts";

/** An exact version, such as `1.2.3`. */
export const EXACT = /^\d[\w.+-]*$/;

/**
 * Returns version and hash of the installed package of a command; undefined if it is not installed.
 * `version` is the pinned version, if there is one.
 */
export function installedPackage(
  written: WrittenCommand,
  home: string,
  version: string | undefined,
): InstalledPackage | undefined {
  const installed = findInstalled(written, home, version);
  return installed && packageOf(installed.record);
}

/** Returns the folder and the record of the package of a command, if it is installed. */
export function findInstalled(written: WrittenCommand, home: string, version: string | undefined) {
  try {
    const command = packageCommand(written);
    if (command === undefined) return undefined;
    const folder = packageFolder(home, pinnedCommand(command, home, version));
    const record = readRecord(folder);
    return record && { command, folder, record };
  } catch {
    // Starting the server reports the error.
    return undefined;
  }
}

/**
 * Adds the pinned version to a command without a version, unless the installed package already has
 * that version.
 */
export function pinnedCommand(
  command: PackageCommand,
  home: string,
  version = "",
): PackageCommand {
  const { tool, spec, name } = command;
  const isAnyVersion = tool === "npm"
    ? [name, `${name}@latest`].includes(spec)
    : !/[=<>!~]/.test(spec);
  if (!isAnyVersion || !EXACT.test(version)) return command;
  if (readRecord(packageFolder(home, command))?.version === version) return command;
  return { ...command, spec: tool === "npm" ? `${name}@${version}` : `${spec}==${version}` };
}

/**
 * Returns the folder of a package in the PML home. Each spec with its set of options has a folder.
 */
export function packageFolder(home: string, command: PackageCommand): string {
  const { tool, spec, bin = "", beside, python = "", settings } = command;
  const more = [...beside, ...settings, ...(tool === "npm" ? [] : [python])];
  const id = sha256([spec, bin, ...more].join(" ")).slice(0, 32);
  return join(home, "servers", `${tool}-${id}`);
}
