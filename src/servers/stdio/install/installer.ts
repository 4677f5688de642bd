/**
 * The interface of an installer of packages.
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
  /** Matches the installer's message when it refuses a package. */
  readonly refusals: RegExp;
  /** The hint for a refused package. */
  readonly hint: string;
  /**
   * Returns why a package that does not come from a configured registry is refused; undefined if
   * all packages come from one. `outputs` are the outputs of the commands.
   */
  findForeign(folder: string, outputs: readonly string[]): string | undefined;
  /**
   * Returns a text that identifies the installed archives and is equal on every system; undefined
   * if the installer has no such text, so that the installed files must be hashed.
   */
  contentOf?(folder: string): string | undefined;
  /** Returns the arguments of the commands that are run in the folder, in order. */
  commands(command: PackageCommand): readonly (readonly string[])[];
  /**
   * Finds the program of a package: the program that the command names; otherwise the only program
   * of the package, or the program with the package's name.
   */
  programOf(
    folder: string,
    command: PackageCommand,
  ): ProgramFile | Promise<ProgramFile>;
}

/** The version of a package, and the file of its program. */
export interface ProgramFile {
  readonly version: string;
  readonly file: string;
}
