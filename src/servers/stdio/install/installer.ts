/**
 * An installer of packages.
 *
 * @module
 */

import type { PackageCommand } from "../_package_command.ts";

/** How packages of one kind are installed. */
export interface Installer {
  /** Files that are written into the folder first. */
  files(command: PackageCommand): Readonly<Record<string, string>>;
  /** Additional variables of the installer. */
  readonly environment: Readonly<Record<string, string>>;
  /** Matches the installer's message when it refuses a package; `hint` is for that case. */
  readonly refusals: RegExp;
  readonly hint: string;
  /**
   * Returns why a package does not come from a registry; undefined if all do. Takes the folder and
   * the output of the commands.
   */
  foreign(folder: string, wrote: readonly string[]): string | undefined;
  /**
   * Returns the installed archives in a form that is the same on every system; undefined if only
   * the files identify the installation.
   */
  contentOf?(folder: string): string | undefined;
  /** Returns the arguments of the commands that are run in the folder, in this order. */
  commands(command: PackageCommand): readonly (readonly string[])[];
  /**
   * Finds the program of a package: the one that is named, the only one, or the one with the
   * package's name.
   */
  programOf(
    folder: string,
    command: PackageCommand,
  ): PackageProgram | Promise<PackageProgram>;
}

/** The version of a package, and the file of its program. */
export interface PackageProgram {
  readonly version: string;
  readonly file: string;
}
