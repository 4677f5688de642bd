/**
 * Finds packages whose command does not name a version.
 *
 * @module
 */

import { packageIfAny, type WrittenCommand } from "./_package_command.ts";

const NPM = /.@[=v]?\d+\.\d+\.\d+(?:[-+][\w.+-]*)?$/;
const PYTHON = /[^=]={2,3}\d[\w.+!-]*$/;

/** Returns the packages that a command installs without an exact version, as they are written. */
export function unpinnedPackages(written: WrittenCommand): readonly string[] {
  const named = packageIfAny(written);
  if (named === undefined) return [];
  const exact = named.tool === "npm" ? NPM : PYTHON;
  return [named.spec, ...named.beside].filter((spec) => !exact.test(spec));
}
