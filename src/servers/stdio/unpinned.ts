/**
 * Finds packages whose command does not name a version.
 *
 * @module
 */

import { packageIfAny, type WrittenCommand } from "./_package_command.ts";

/** Matches specs with an exact version. */
const NPM = /.@[=v]?\d+\.\d+\.\d+(?:[-+][\w.+-]*)?$/;
const PYTHON = /[^=]={2,3}\d[\w.+!-]*$/;

/** Returns the specs of the packages that a command installs without an exact version. */
export function unpinnedPackages(written: WrittenCommand): readonly string[] {
  const command = packageIfAny(written);
  if (command === undefined) return [];
  const exact = command.tool === "npm" ? NPM : PYTHON;
  return [command.spec, ...command.beside].filter((spec) => !exact.test(spec));
}
