/**
 * Finds the packages of servers that are installed. It installs and starts nothing.
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
 * Returns the installed package of a command, without installing or running anything. `version` is
 * the pinned one, if there is one.
 */
export function installedPackage(
  written: WrittenCommand,
  home: string,
  version: string | undefined,
): InstalledPackage | undefined {
  const installed = installedOf(written, home, version);
  return installed && packageOf(installed.known);
}

/** Returns the folder and the record of the package of a command, if it is installed. */
export function installedOf(written: WrittenCommand, home: string, version: string | undefined) {
  try {
    const command = packageCommand(written);
    if (command === undefined) return undefined;
    const folder = packageFolder(home, pinnedCommand(command, home, version));
    const record = readRecord(folder);
    return record && { asked: command, folder, known: record };
  } catch {
    // Starting the server reports why it cannot be used.
    return undefined;
  }
}

/**
 * Adds the pinned version if a command names none, unless the installed package has that version
 * already.
 */
export function pinnedCommand(
  command: PackageCommand,
  home: string,
  version = "",
): PackageCommand {
  const { tool, spec, name } = command;
  const isOpen = tool === "npm" ? [name, `${name}@latest`].includes(spec) : !/[=<>!~]/.test(spec);
  if (!isOpen || !EXACT.test(version)) return command;
  if (readRecord(packageFolder(home, command))?.version === version) return command;
  return { ...command, spec: tool === "npm" ? `${name}@${version}` : `${spec}==${version}` };
}

/** Returns the folder of a package below the PML home: one for each form of its command. */
export function packageFolder(home: string, command: PackageCommand): string {
  const { tool, spec, bin = "", beside, python = "", settings } = command;
  const more = [...beside, ...settings, ...(tool === "npm" ? [] : [python])];
  const id = sha256([spec, bin, ...more].join(" ")).slice(0, 32);
  return join(home, "servers", `${tool}-${id}`);
}
