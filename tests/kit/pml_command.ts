/**
 * The command that starts PML from the repository in tests.
 *
 * @module
 */

import process from "node:process";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A program and its first arguments. */
export type Command = readonly [program: string, ...args: string[]];

/**
 * Returns the command that runs PML, with the options of the installed one: the repository's own
 * `mod.ts`, or the code of the npm package in the folder that `deno task test` made.
 */
export function pmlCommand(): Command {
  const main = process.env.PML_TEST_MAIN;
  return main === undefined ? sourceCommand() : denoRun(main);
}

/** Returns the command that runs the repository's own `mod.ts`. */
export function sourceCommand(): Command {
  return denoCommand("mod.ts");
}

/** Returns the command that runs a file of the repository with every permission. */
export function denoCommand(relative: string): Command {
  return denoRun(repoFile(relative));
}

function denoRun(file: string): Command {
  return [process.execPath, "run", "-A", "--config", repoFile("deno.json"), file];
}

/**
 * Returns the definition of a server that runs a file of the repository. It uses the cache of the
 * tests: with an empty one, each start compiles its code, and downloads and unpacks npm packages,
 * which takes 0.74 s of processor time and not 0.1.
 */
export function denoServer(relative: string, ...more: readonly string[]): {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} {
  const [command, ...args] = denoCommand(relative);
  return { command, args: [...args, ...more], env: { DENO_DIR: "${DENO_DIR}" } };
}

/** The command that runs the repository's hub. */
export const HUB: Command = denoCommand("hub/mod.ts");

/** Returns the absolute path of a file of the repository. */
export function repoFile(relative: string): string {
  return ROOT + relative;
}
