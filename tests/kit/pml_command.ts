/**
 * Says how a test starts PML from the repository.
 *
 * @module
 */

import process from "node:process";

const ROOT = decodeURIComponent(new URL("../../", import.meta.url).pathname);

/** A program and its first arguments. */
export type Command = readonly [program: string, ...args: string[]];

/** Gives the command that runs the repository's own `mod.ts`, as the installed one runs it. */
export function pmlCommand(): Command {
  return denoCommand("mod.ts");
}

/** Gives the command that runs a file of the repository with every permission. */
export function denoCommand(relative: string): Command {
  const config = repoFile("deno.json");
  return [process.execPath, "run", "-A", "--config", config, repoFile(relative)];
}

/** Gives the absolute path of a file of the repository. */
export function repoFile(relative: string): string {
  return ROOT + relative;
}
