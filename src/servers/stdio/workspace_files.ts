/**
 * Finds out whether a definition runs files of the workspace.
 *
 * @module
 */

import { WORKSPACE_FOLDER } from "../../core/folder_variables.ts";
import { plainCommand } from "../../core/plain_command.ts";
import { isRunner, loadsCodeFromFolder } from "./_folder_code.ts";
import { packageIfAny, programName } from "./_package_command.ts";

/** A command and its working folder, as the definition contains them. */
interface WrittenProgram {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string | undefined;
}

/** Matches options whose value is a file or a folder from which a program loads code. */
const CODE_OPTION =
  /^(?:-[rCmp]|-cp|--(?:import|require|loader|directory|project|prefix|cwd|config|env-file|class-?path|manifest-path|file))(?:=|$)/;
const CODE_FILE = /\.(?:[cm]?[jt]sx?|py|rb|pl|php|sh|jar|json|toml|ya?ml)$/i;
/** Matches programs whose argument can be a whole command line. */
const SHELL = /^(?:\w*sh|cmd|powershell)$/i;

/**
 * Returns whether a definition loads code from the workspace: its command, its script, or the
 * folder from which it loads code is in the workspace. Other paths in its arguments count as data.
 */
export function runsWorkspaceFiles(program: WrittenProgram): boolean {
  if (![program.command, program.cwd ?? "", ...program.args].some(isInWorkspace)) return false;
  if (isInWorkspace(program.command)) return true;
  if (program.cwd?.includes(WORKSPACE_FOLDER) && loadsCodeFromFolder(program)) return true;
  const ofPackage = packageIfAny(program);
  const { command, args } = ofPackage
    ? { command: ofPackage.bin ?? ofPackage.name, args: ofPackage.args }
    : plainCommand(program);
  if (!isRunner(command)) return false;
  if (SHELL.test(programName(command))) return args.some(isInWorkspace);
  const script = args.findIndex((arg) => !arg.startsWith("-"));
  return args.some((arg, index) =>
    isInWorkspace(arg) &&
    (index === script || CODE_FILE.test(arg) || CODE_OPTION.test(arg) ||
      CODE_OPTION.test(args[index - 1] ?? ""))
  );
}

function isInWorkspace(arg: string): boolean {
  return arg.includes(WORKSPACE_FOLDER);
}
