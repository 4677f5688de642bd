/**
 * The command line of the hub.
 *
 * @module
 */

import { PmlError, quoted } from "@casys/pml/registry";
import { print, tell } from "./out.ts";

/** The version of this program. */
export const VERSION = "0.1.0";

const HELP = `Usage: pml-hub COMMAND

A registry that a team hosts for itself.

  --version             prints the version
  --help                prints this text`;

/** Runs a command, and returns the exit code: 0, 1, or 2 if the command line is wrong. */
export async function run(args: readonly string[]): Promise<number> {
  try {
    return await command(args);
  } catch (error) {
    if (!(error instanceof PmlError)) throw error;
    tell(`error: ${error.message}${error.hint === undefined ? "" : `\n  ${error.hint}`}`);
    return error.code === "USAGE" || error.code === "CONFIG_INVALID" ? 2 : 1;
  }
}

async function command([verb = "--help"]: readonly string[]): Promise<number> {
  if (verb === "--version") return said(VERSION);
  if (verb === "--help" || verb === "help") return said(HELP);
  throw await Promise.resolve(
    new PmlError("USAGE", `Cannot run ${quoted(verb)}: there is no such command`, {
      hint: "Run `pml-hub --help`",
    }),
  );
}

function said(text: string): number {
  print(text);
  return 0;
}
