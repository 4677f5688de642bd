/**
 * Starts batch files on Windows. The system runs them in `cmd.exe`, which parses their arguments by
 * its own rules: the argument `"&calc.exe` would start another program. So PML builds the command
 * line itself and escapes each argument, by the rules of Rust's standard library
 * (`make_bat_command_line`).
 *
 * @module
 */

/** A program and its arguments. */
interface ProgramCommand {
  readonly file: string;
  readonly args: readonly string[];
}

/** A command to start. */
export interface StartedCommand extends ProgramCommand {
  /** Whether the arguments are parts of the command line as they are. Only Windows uses it. */
  readonly windowsRawArguments?: boolean;
}

/** Windows ignores blanks and dots at the end of a name. */
const BATCH_FILE = /\.(?:bat|cmd)[. ]*$/i;
/**
 * Arguments that need no quotes, neither for `cmd.exe` nor for programs that parse their own line.
 */
const PLAIN_ARGUMENT = /^[A-Za-z0-9#$*+\-./:?@_\\\u{a0}-\u{10ffff}]+$/u;
/** The maximum length of a line that `cmd.exe` reads, in characters. */
const LINE_MAX = 8_000;
/**
 * `cmd.exe` replaces `%NAME%` everywhere, also between quotes. This text after each `%` prevents
 * that: it expands to nothing, and no variable name contains it.
 */
const EMPTY_EXPANSION = "%cd:~,%";

/** Returns whether Windows would start `cmd.exe` for a file. */
export function isBatch(file: string): boolean {
  return BATCH_FILE.test(file);
}

/** Returns the file of `cmd.exe`, in the folder of Windows. */
export function cmdExePath(windows: string): string {
  return `${windows}\\System32\\cmd.exe`;
}

/**
 * Returns the command to start on Windows: a batch file runs in the `cmd.exe` of the system. Throws
 * a `TypeError` with the reason if `cmd.exe` cannot read an argument as it is.
 */
export function startedCommand({ file, args }: ProgramCommand, windows: string): StartedCommand {
  if (!isBatch(file)) return { file, args };
  if (/["%\r\n]/.test(file) || BATCH_FILE.exec(file)?.[0].match(/[. ]$/)) {
    throw new TypeError("cmd.exe would read its name differently");
  }
  const unsafeIndex = args.findIndex((arg) => /[\r\n\0]/.test(arg));
  if (unsafeIndex >= 0) {
    throw new TypeError(`its argument ${unsafeIndex + 1} has a line break: cmd.exe ends there`);
  }
  // `/e:ON` enables the extensions that `EMPTY_EXPANSION` needs, `/v:OFF` disables variables with
  // `!`, `/d` skips AutoRun commands, and `/q` prints no commands between the messages of a server.
  const line = `/e:ON /v:OFF /d /q /c "${[`"${file}"`, ...args.map(quotedArgument)].join(" ")}"`;
  if (line.length <= LINE_MAX) {
    return { file: cmdExePath(windows), args: [line], windowsRawArguments: true };
  }
  throw new TypeError(
    `its arguments are longer than ${LINE_MAX} characters: cmd.exe reads no more`,
  );
}

/**
 * Returns an argument escaped for `cmd.exe` and for the program: `""` is a quote for both, and
 * backslashes before a quote are doubled.
 */
function quotedArgument(arg: string): string {
  const isPlain = PLAIN_ARGUMENT.test(arg) && !arg.endsWith("\\");
  const text = arg.replaceAll("%", `%${EMPTY_EXPANSION}`);
  return isPlain ? text : `"${text.replace(/(\\*)"/g, '$1$1""').replace(/\\+$/, "$&$&")}"`;
}
