/**
 * How the files of clients start programs on Windows: installers of npm and Deno make scripts there
 * (`pml.cmd`, `npx.cmd`), which clients that do not look for `.cmd` start with `cmd /c`.
 *
 * @module
 */

import { plainCommand } from "../core/plain_command.ts";

/** A command and its arguments. */
export interface ProgramStart {
  readonly command: string;
  readonly args: readonly string[];
}

/**
 * Matches characters that `cmd` replaces or splits at. Without `cmd` they have no special meaning,
 * because clients start programs without a shell.
 */
const CMD_SPECIAL = /[%^&|<>"!()\r\n]/;
const IS_CMD = /^(?:.*[\\/])?cmd(?:\.exe)?$/i;
/** Matches a script without a path, which the system finds without the suffix. */
const NAMED_SCRIPT = /^([^\\/]+)\.(?:cmd|bat)$/i;

/** Returns a start through `cmd /c`, which finds and runs scripts. */
export function throughCmd({ command, args }: ProgramStart): ProgramStart {
  // `cmd` does not accept quotes around a path with these characters, but finds a name on PATH.
  const program = CMD_SPECIAL.test(command) ? nameOf(command) : command;
  return { command: "cmd", args: ["/c", program, ...args] };
}

/**
 * Returns a start without `cmd /c` and `.cmd`, for every system: `cmd /c npx -y x` becomes
 * `npx -y x`. A start with arguments that `cmd` would change is returned unchanged.
 */
export function withoutCmd(start: ProgramStart): ProgramStart {
  const { command, args } = start;
  const isWrapped = IS_CMD.test(command);
  if (isWrapped && args.some((arg) => CMD_SPECIAL.test(arg) && !isQuotedLine(arg))) return start;
  const plain = isWrapped ? plainCommand(start) : { ...start, env: {} };
  if (IS_CMD.test(plain.command) || Object.keys(plain.env).length > 0) return start;
  return { command: plain.command.replace(NAMED_SCRIPT, "$1"), args: plain.args };
}

/** Returns whether the only special characters of a line are quotes around its words. */
function isQuotedLine(line: string): boolean {
  return line.includes('"') && !CMD_SPECIAL.test(line.replaceAll('"', ""));
}

function nameOf(path: string): string {
  return path.replace(/^.*[\\/]/, "").replace(NAMED_SCRIPT, "$1");
}
