/**
 * Finds the program behind a command that only starts another command: a shell with a plain line,
 * `env` or `cmd /c`.
 *
 * @module
 */

/** A command, with the variables that it sets. */
export interface PlainCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const WRAPPER = /^(?:.*[\\/])?(?:((?:ba|da|k|z)?sh)|(env)|cmd)(?:\.exe)?$/i;
const FLAGS = { shell: /^-(?:[il]+|[il]*c)$/, cmd: /^\/[dsqc]$/i };
/**
 * A line that every shell reads in the same way: plain words and quotes without any expansion. The
 * pattern can match each character in only one way, so that no untrusted line can make it slow.
 */
const LINE = /^(?:[ \t\w@%+:,./=^-]|(?<=[\w@%+,./^~-])~|'[^']*'|"[^"$`\\!]*")*$/;
const WORD = /(?:[^\s'"]|'[^']*'|"[^"]*")+/g;
const ASSIGNMENT = /^([a-z_]\w*)=(.*)$/is;

const CONTAINERS = /^(?:.*[\\/])?(?:docker|podman(?:-remote)?|nerdctl)(?:\.exe)?$/i;

/**
 * Returns whether a command is one of the programs that run containers. All of them take the same
 * arguments.
 */
export function runsContainers({ command }: Pick<PlainCommand, "command">): boolean {
  return CONTAINERS.test(command);
}

/**
 * Returns the command that runs in the end. Returns a command unchanged if shells could read it in
 * different ways.
 */
export function plainCommand(
  { command, args }: Omit<PlainCommand, "env">,
): PlainCommand {
  const env: Record<string, string> = {};
  for (let words = [command, ...args];;) {
    const next = findInnerCommand(words);
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

/** Returns the words of the command that this command starts. Variables may come first. */
function findInnerCommand([command = "", ...args]: readonly string[]): string[] | undefined {
  const [wrapper, shell, env] = WRAPPER.exec(command) ?? [];
  if (wrapper === undefined) return undefined;
  if (env !== undefined) return args[0]?.startsWith("-") ? undefined : args;
  const isFlag = shell === undefined ? FLAGS.cmd : FLAGS.shell;
  const end = args.findIndex((arg) => !isFlag.test(arg));
  const [whole = "", ...more] = args.slice(end);
  const line = whole.trim();
  if (!/c$/i.test(args[end - 1] ?? "")) return undefined;
  // `cmd` may also get the words one by one.
  if (shell === undefined && (more.length > 0 || !/\s/.test(line))) return [line, ...more];
  if (more.length > 0 || !LINE.test(line) || shell === undefined && /[%^']/.test(line)) {
    return undefined;
  }
  const words = (line.match(WORD) ?? []).map((word) =>
    word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2")
  );
  return words[0] === "exec" ? words.slice(1) : words;
}
