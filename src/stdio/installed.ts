/**
 * Finds the packages of servers that are installed. It installs and starts nothing.
 *
 * @module
 */

import { join } from "node:path";
import { sha256 } from "../core/hash.ts";
import { type PackageCommand, packageCommand, type WrittenCommand } from "./_package_command.ts";
import { type InstalledPackage, type InstallRecord, packageOf, recordOf } from "./_record.ts";
import { scriptedIn, type ScriptedPackage } from "./_scripts.ts";

/** An exact version, such as `1.2.3`. */
const EXACT = /^\d[\w.+-]*$/;

/** Returns the installed package of a command, without installing or running anything. */
export function installedPackage(
  written: WrittenCommand,
  from: { readonly home: string; readonly version: string | undefined },
): InstalledPackage | undefined {
  try {
    const asked = packageCommand(written);
    const known = asked && recordOf(folderOf(from.home, pinnedCommand(asked, from)));
    return known && packageOf(known);
  } catch {
    // Starting the server reports why it cannot be used.
    return undefined;
  }
}

/**
 * Returns the packages of a command that are installed and have install scripts that did not run.
 */
export function waitingScripts(
  written: WrittenCommand,
  from: { readonly home: string; readonly version: string | undefined },
): readonly ScriptedPackage[] {
  try {
    const asked = packageCommand(written);
    const folder = asked && folderOf(from.home, pinnedCommand(asked, from));
    const known = folder && recordOf(folder);
    return !known || asked.isScriptless ? [] : waitingIn(folder, known);
  } catch {
    return []; // starting the server reports why it cannot be used
  }
}

/**
 * Adds the pinned version if a command names none, unless the installed package has that version
 * already.
 */
export function pinnedCommand(
  wanted: PackageCommand,
  { home, version = "" }: { readonly home: string; readonly version: string | undefined },
): PackageCommand {
  const { tool, spec, name } = wanted;
  const isOpen = tool === "npm" ? [name, `${name}@latest`].includes(spec) : !/[=<>!~]/.test(spec);
  if (!isOpen || !EXACT.test(version)) return wanted;
  if (recordOf(folderOf(home, wanted))?.version === version) return wanted;
  return { ...wanted, spec: tool === "npm" ? `${name}@${version}` : `${spec}==${version}` };
}

/** Returns the folder of a package below the PML home: one for each form of its command. */
export function folderOf(home: string, wanted: PackageCommand): string {
  const { tool, spec, bin = "", beside, python = "", settings } = wanted;
  const more = [...beside, ...settings, ...(tool === "npm" ? [] : [python])];
  const id = sha256([spec, bin, ...more].join(" ")).slice(0, 32);
  return join(home, "servers", `${tool}-${id}`);
}

/** Returns the packages in a folder whose install scripts did not run. */
export function waitingIn(folder: string, { ran = [] }: InstallRecord): readonly ScriptedPackage[] {
  return scriptedIn(folder).filter(({ id }) => !ran.includes(id));
}

/** Tells whether a folder is there. */
export function isThere(folder: string): boolean {
  try {
    return Deno.lstatSync(folder).isDirectory;
  } catch {
    return false;
  }
}
