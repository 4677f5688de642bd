/**
 * Tells which commands take what they run, or how they run it, from the folder that they start in.
 *
 * @module
 */

import { isAbsolute } from "node:path";
import { plainCommand } from "../core/plain_command.ts";
import { packageIfAny, programName, type WrittenCommand } from "./_package_command.ts";

/** Programs that read settings or code in their folder, also where another program starts them. */
const RUNNERS =
  /^(?:np[mx]|pnp[mx]|pnx?|yarn|bunx?|deno|dx|tsx|ts-node|uvx?|pipx?|poetry|pdm|cargo|go|dotnet|dnx|make|mise|compose)$/i;
/** Programs that do so, too, unless a file follows by its whole path. */
const INTERPRETERS = /^(?:node|(?:python|pypy)w?[\d.]*|ruby|perl|php|java)$/i;
/** Programs that only start others. */
const STARTERS = /^(?:\w*sh|cmd|powershell|env|sudo|doas)$/i;

/** Returns whether a program runs code that others bring. */
export function runsAnything(program: string): boolean {
  const name = programName(program);
  return RUNNERS.test(name) || INTERPRETERS.test(name) || STARTERS.test(name);
}

/** Returns whether other files in its folder would change what a command runs. */
export function takesFromFolder(written: WrittenCommand): boolean {
  const { command, args } = plainCommand(written);
  const named = packageIfAny(written);
  const all = named ? [named.bin ?? named.name, ...named.args] : [command, ...args];
  const words = all.join(" ").split(/[\s"'`;&|()=]+/);
  const isInside = /[\\/]/.test(command) && !isAbsolute(command);
  return isInside ||
    words.map(programName).some((name, at) =>
      RUNNERS.test(name) || INTERPRETERS.test(name) && !isAbsolute(words[at + 1] ?? "")
    );
}
