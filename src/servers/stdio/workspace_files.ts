/**
 * Finds the definitions that run files of the open workspace.
 *
 * @module
 */

import { WORKSPACE_FOLDER } from "../../core/folder_variables.ts";
import { plainCommand } from "../../core/plain_command.ts";
import { runsAnything, takesFromFolder } from "./_folder_code.ts";
import { packageIfAny, programName } from "./_package_command.ts";

/** A command and its working folder, as the definition has them. */
interface WrittenProgram {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
}

/** Options whose value is a file or a folder from which a program takes code. */
const CODE_OPTION =
  /^(?:-[rCmp]|-cp|--(?:import|require|loader|directory|project|prefix|cwd|config|env-file|class-?path|manifest-path|file))(?:=|$)/;
const CODE_FILE = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar|json|toml|ya?ml)$/i;
/** Programs that take a whole line of a shell. */
const SHELL = /^(?:\w*sh|cmd|powershell)$/i;

/**
 * Returns whether a definition names the workspace where a program takes code from: as its command,
 * its script, or the folder in which it looks for files. A path that is passed to a server is data.
 */
export function runsWorkspaceFiles(own: WrittenProgram): boolean {
  if (![own.command, own.cwd ?? "", ...own.args].some(isInWorkspace)) return false;
  if (isInWorkspace(own.command)) return true;
  if (own.cwd?.includes(WORKSPACE_FOLDER) && takesFromFolder(own)) return true;
  const named = packageIfAny(own);
  const { command, args } = named
    ? { command: named.bin ?? named.name, args: named.args }
    : plainCommand(own);
  if (!runsAnything(command)) return false;
  if (SHELL.test(programName(command))) return args.some(isInWorkspace);
  const script = args.findIndex((arg) => !arg.startsWith("-"));
  return args.some((arg, at) =>
    isInWorkspace(arg) &&
    (at === script || CODE_FILE.test(arg) || CODE_OPTION.test(arg) ||
      CODE_OPTION.test(args[at - 1] ?? ""))
  );
}

function isInWorkspace(arg: string): boolean {
  return arg.includes(WORKSPACE_FOLDER);
}
