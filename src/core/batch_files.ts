/**
 * Batch files of Windows. The system starts them with `cmd.exe`, which reads their arguments by its
 * own rules: `"&calc.exe` would start another program. So they are started with a command line
 * whose arguments `cmd.exe` can only read as they were given. The rules are those of Rust's
 * standard library (`make_bat_command_line`).
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
const BATCH = /\.(?:bat|cmd)[. ]*$/i;
/** Characters that mean nothing to `cmd.exe`, and to programs that read their own command line. */
const PLAIN = /^[A-Za-z0-9#$*+\-./:?@_\\\u{a0}-\u{10ffff}]+$/u;
/** `cmd.exe` reads no longer line. */
const LONGEST = 8_000;
/**
 * `cmd.exe` puts variables in wherever it finds `%NAME%`, also between quotes. This text is empty, so
 * that a `%` before it is the end of no name.
 */
const NOTHING = "%cd:~,%";

/** Returns whether Windows would start `cmd.exe` for a file. */
export function isBatch(file: string): boolean {
  return BATCH.test(file);
}

/** Returns the file of `cmd.exe`, in the folder of Windows. */
export function shellIn(windows: string): string {
  return `${windows}\\System32\\cmd.exe`;
}

/**
 * Returns the command to start on Windows: a batch file runs in the `cmd.exe` of the system. Throws a
 * `TypeError` with the reason if `cmd.exe` cannot read an argument as it is.
 */
export function startedCommand({ file, args }: ProgramCommand, windows: string): StartedCommand {
  if (!isBatch(file)) return { file, args };
  if (/["%\r\n]/.test(file) || BATCH.exec(file)?.[0].match(/[. ]$/)) {
    throw new TypeError("its name is one that cmd.exe reads differently");
  }
  const odd = args.findIndex((arg) => /[\r\n\0]/.test(arg));
  if (odd >= 0) throw new TypeError(`its argument ${odd + 1} has a line break: cmd.exe ends there`);
  // Extensions are on for `NOTHING`, variables with `!` are off, no AutoRun of the registry runs, and
  // no line of the file is printed between the messages of a server.
  const line = `/e:ON /v:OFF /d /q /c "${[`"${file}"`, ...args.map(quotedArgument)].join(" ")}"`;
  if (line.length <= LONGEST) {
    return { file: shellIn(windows), args: [line], windowsRawArguments: true };
  }
  throw new TypeError(`its arguments are longer than ${LONGEST} characters: cmd.exe reads no more`);
}

/** Programs take `""` for a quote, and so does `cmd.exe`. Backslashes before a quote are doubled. */
function quotedArgument(arg: string): string {
  const isPlain = PLAIN.test(arg) && !arg.endsWith("\\");
  const text = arg.replaceAll("%", `%${NOTHING}`);
  return isPlain ? text : `"${text.replace(/(\\*)"/g, '$1$1""').replace(/\\+$/, "$&$&")}"`;
}
