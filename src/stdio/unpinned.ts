/**
 * Names the packages whose version is not in the command that installs them.
 *
 * @module
 */

import { type PackageCommand, packageCommand, type Written } from "./_package_command.ts";

const NPM = /.@[=v]?\d+\.\d+\.\d+(?:[-+][\w.+-]*)?$/;
const PYTHON = /[^=]={2,3}\d[\w.+!-]*$/;

/** Gives what a command installs in whatever version is the newest of it, as it is written there. */
export function unpinnedPackages(written: Written): readonly string[] {
  const named = commandOf(written);
  if (named === undefined) return [];
  const exact = named.tool === "npm" ? NPM : PYTHON;
  return [named.spec, ...named.beside].filter((spec) => !exact.test(spec));
}

function commandOf(written: Written): PackageCommand | undefined {
  try {
    return packageCommand(written);
  } catch {
    // Starting it says why it installs nothing.
    return undefined;
  }
}
