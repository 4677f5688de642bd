/**
 * Shows a failure to the user, and to a script that asked for JSON.
 *
 * @module
 */

import { asPmlError, type ErrorCode, PmlError } from "../core/errors.ts";
import { memberOf, quoted } from "../core/json.ts";
import { nearName } from "../core/near_name.ts";
import { paintFailure } from "./_paint.ts";
import { printJson, tell } from "./out.ts";

/** Hints for a user, by the codes of errors whose own hints are for a model. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  UNKNOWN_TOOL: "Find its name with `pml search` or `pml tools`",
  APPROVAL_DECLINED: "Nothing was run",
  BAD_ARGUMENTS: "Look at its arguments with `pml tools SERVER:TOOL`",
};

/** Shows a failure, and returns its exit code. `args` are the arguments of the command line. */
export function report(error: unknown, args: readonly string[]): number {
  const { code, message, hint: ownHint, detail } = asPmlError(error);
  const [command] = args;
  const tool = args.find((word) => /^[\w.-]+(:|__)[\w.-]+$/.test(word)) ?? "SERVER:TOOL";
  const userHint = HINTS[code];
  // Errors of capabilities, and of tools that a file disables, have hints for the user.
  const isForUser = command === "capability" || typeof detail?.file === "string" ||
    userHint !== undefined && ownHint?.startsWith(userHint);
  const hint = (isForUser ? ownHint : userHint ?? ownHint)?.replace(
    "SERVER:TOOL",
    tool,
  );
  const stderr = typeof detail?.stderr === "string" ? detail.stderr : "";
  const hasStderr = message.includes(stderr);
  // The mark distinguishes these lines from PML's own, which a server could imitate.
  const printed = stderr.split("\n").map((line) => `\n    | ${line}`).join("");
  const more = [hint, !hasStderr && `It printed:${printed}`].filter(Boolean);
  tell([`error: ${code}: ${message}`, ...more].join("\n  "), { paint: paintFailure });
  try {
    if (isJson(args)) printJson({ error: { code, message, hint, detail } });
  } catch {
    // Stdout does not work; stderr has shown the error already.
  }
  return code === "USAGE" || code === "CONFIG_INVALID" ? 2 : 1;
}

/** Returns whether PML's own arguments contain `--json`. Arguments after `--` are for another program. */
function isJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? undefined : end).includes("--json");
}

/**
 * A subcommand: its function, and the minimum and maximum number of words after its name. The default
 * of the maximum is the minimum.
 */
type Subcommand<T> = readonly [run: T, least: number, most?: number];

/** Returns the subcommand that the first word names. Throws `USAGE` for unknown words. */
export function subcommandOf<T>(
  command: string,
  words: readonly string[],
  commands: Readonly<Record<string, Subcommand<T>>>,
): T {
  const [word = "", ...more] = words;
  const [run, least = 0, most = least] = memberOf(commands, word) ?? [];
  if (run !== undefined && more.length >= least && more.length <= most) return run;
  if (run === undefined || word === "") {
    throw unknownWords(command, { words, known: Object.keys(commands) });
  }
  const count = more.length < least ? "few" : "many";
  throw usage(
    `Cannot run ${quoted(["pml", command, ...words].join(" "), 200)}: too ${count} arguments for ` +
      quoted(word),
    most === 0 ? `Write \`pml ${command} ${word}\`` : `Look at \`pml ${command} --help\``,
  );
}

/** Returns a `USAGE` error for unknown words after a command. */
export function unknownWords(
  command: string,
  { words, known }: { readonly words: readonly string[]; readonly known: readonly string[] },
): PmlError {
  const [word = known[0] ?? ""] = words;
  const message = `Cannot run ${quoted(["pml", command, ...words].join(" "), 200)}`;
  if (known.length === 0 || known.includes(word)) {
    return usage(`${message}: too few arguments, or too many`, `Look at \`pml ${command} --help\``);
  }
  const otherwise = `Use ${known.length > 1 ? "one of " : ""}${known.join(", ")}`;
  return usage(
    `${message}: unknown subcommand ${quoted(word, 200)}`,
    suggestionFor(word, { known, otherwise }),
  );
}

/**
 * Returns the text `before` with a question about the known name that is most similar; `otherwise` if
 * none is similar.
 */
export function suggestionFor(
  name: string,
  { known, before = "", otherwise = before }: {
    readonly known: readonly string[];
    readonly before?: string;
    readonly otherwise?: string;
  },
): string {
  const near = nearName(name, known);
  if (near === undefined || near === name) return otherwise;
  return `${before && `${before}. `}Did you mean ${quoted(near)}?`;
}

/** Returns a `USAGE` error for an unknown name, with a suggestion from the known names. */
export function unknownNameError(
  tried: string,
  name: string,
  { why, known, otherwise = "See `pml list`" }: {
    readonly why: string;
    readonly known: readonly string[];
    readonly otherwise?: string;
  },
): PmlError {
  return usage(
    `Cannot ${tried} ${quoted(name)}: ${why}`,
    suggestionFor(name, { known, otherwise }),
  );
}

/** Returns the hint of a failed start, without sentences about a call. Returns undefined if it is empty. */
export function startHint({ hint }: PmlError): string | undefined {
  const text = hint?.replace(/(?:^|\. )(?:Nothing was |The call may have run).*$/s, "");
  return text === "" ? undefined : text;
}

/** Returns a `USAGE` error, for arguments that are not valid. */
export function usage(message: string, hint: string): PmlError {
  return new PmlError("USAGE", message, { hint });
}
