/**
 * Reads a command through what only starts another one: a shell with a plain line, `env`, `cmd /c`.
 *
 * @module
 */

/** A command, with the variables that were written into it. */
export interface PlainCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const WRAPPER = /^(?:.*[\\/])?(?:((?:ba|da|k|z)?sh)|(env)|cmd)(?:\.exe)?$/i;
const FLAGS = { shell: /^-(?:[il]+|[il]*c)$/, cmd: /^\/[dsqc]$/i };
/**
 * Words as every shell reads them, on one line, and quotes in which nothing stands for anything else.
 * Each character can be read in one way only: a file that nobody trusts yet can aim at others.
 */
const LINE = /^(?:[ \t\w@%+:,./=^-]|(?<=[\w@%+,./^~-])~|'[^']*'|"[^"$`\\!]*")*$/;
const WORD = /(?:[^\s'"]|'[^']*'|"[^"]*")+/g;
const ASSIGNMENT = /^([a-z_]\w*)=(.*)$/is;

/** Gives the command that is run in the end; one that a shell would not read plainly stays as it is. */
export function plainCommand(
  { command, args }: Omit<PlainCommand, "env">,
): PlainCommand {
  const env: Record<string, string> = {};
  for (let words = [command, ...args];;) {
    const next = within(words);
    const start = next?.findIndex((word) => !ASSIGNMENT.test(word)) ?? -1;
    if (next === undefined || start < 0) {
      const [first = "", ...rest] = words;
      return { command: first, args: rest, env };
    }
    for (const word of next.slice(0, start)) {
      const [, name = "", value = ""] = ASSIGNMENT.exec(word) ?? [];
      env[name] = value;
    }
    words = next.slice(start);
  }
}

/** Gives the words that a command only starts, the variables before them. */
function within([command = "", ...args]: readonly string[]): string[] | undefined {
  const [isOne, shell, env] = WRAPPER.exec(command) ?? [];
  if (isOne === undefined) return undefined;
  if (env !== undefined) return args[0]?.startsWith("-") ? undefined : args;
  const isFlag = shell === undefined ? FLAGS.cmd : FLAGS.shell;
  const end = args.findIndex((arg) => !isFlag.test(arg));
  const [whole = "", ...more] = args.slice(end);
  const line = whole.trim();
  if (!/c$/i.test(args[end - 1] ?? "")) return undefined;
  // `cmd` is given the words one by one, too.
  if (shell === undefined && (more.length > 0 || !/\s/.test(line))) return [line, ...more];
  if (more.length > 0 || !LINE.test(line) || shell === undefined && /[%^']/.test(line)) {
    return undefined;
  }
  const words = (line.match(WORD) ?? []).map((word) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2")
  );
  return words[0] === "exec" ? words.slice(1) : words;
}
