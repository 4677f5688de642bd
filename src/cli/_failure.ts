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

/** Hints for a user, where the error's own hint is written for a model. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  UNKNOWN_TOOL: "Find its name with `pml search` or `pml tools`",
  APPROVAL_DECLINED: "Nothing was run",
  BAD_ARGUMENTS: "Look at its arguments with `pml tools SERVER:TOOL`",
};

/**
 * Shows a failure and returns the exit code for it. `args` are the arguments that started the
 * command.
 */
export function report(error: unknown, args: readonly string[]): number {
  const { code, message, hint: ownHint, detail } = asPmlError(error);
  const tool = args.find((one) => /^[\w.-]+(:|__)[\w.-]+$/.test(one)) ?? "SERVER:TOOL";
  // Errors of capabilities and of disabled tools have their own hints.
  const hasOwn = args[0] === "capability" || typeof detail?.file === "string";
  const hint = (hasOwn ? ownHint : HINTS[code] ?? ownHint)?.replace(
    "SERVER:TOOL",
    tool,
  );
  const wrote = typeof detail?.stderr === "string" ? detail.stderr : "";
  const isShown = message.includes(wrote);
  const more = [hint, !isShown && `It printed: ${wrote.replaceAll("\n", "\n  ")}`].filter(Boolean);
  tell([`error: ${code}: ${message}`, ...more].join("\n  "), { paint: paintFailure });
  try {
    if (isJson(args)) printJson({ error: { code, message, hint, detail } });
  } catch {
    // Stdout does not work; stderr has shown the error already.
  }
  return code === "USAGE" || code === "CONFIG_INVALID" ? 2 : 1;
}

/** Returns whether PML's own arguments ask for JSON. Those after `--` are for another program. */
function isJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? undefined : end).includes("--json");
}

/**
 * The description of a subcommand, and the minimum and maximum number of words after its name; by
 * default as many.
 */
type Subcommand<T> = readonly [does: T, least: number, most?: number];

/** Returns the subcommand that the first word names. Throws `USAGE` for unknown words. */
export function subcommandOf<T>(
  command: string,
  words: readonly string[],
  commands: Readonly<Record<string, Subcommand<T>>>,
): T {
  const [word = "", ...more] = words;
  const [does, least = 0, most = least] = memberOf(commands, word) ?? [];
  if (does !== undefined && more.length >= least && more.length <= most) return does;
  if (does === undefined || word === "") {
    throw unknownWords(command, { words, known: Object.keys(commands) });
  }
  const count = more.length < least ? "few" : "many";
  throw usage(
    `Cannot run ${quoted(["pml", command, ...words].join(" "), 200)}: too ${count} arguments for ` +
      quoted(word),
    `Look at \`pml ${command} --help\``,
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
 * Returns a question with the nearest of the known names, after the text `before`; `otherwise` if none
 * is near.
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

/** Returns a `USAGE` error for a name that names no such thing. */
export function misnamed(
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

/** Returns a `USAGE` error, for arguments that make no sense. */
export function usage(message: string, hint: string): PmlError {
  return new PmlError("USAGE", message, { hint });
}
