/**
 * Creates the error of a failed call: a `PmlError`, or the error that the module threw.
 *
 * @module
 */

import { NOTHING_RAN, PmlError, type PmlErrorOptions } from "../core/errors.ts";
import { type Json, objectOf, textOf } from "../core/json.ts";
import { ASK_FOR_LESS } from "../core/json_bounds.ts";
import { NET } from "./denied_names.ts";

/** The maximum length of the message of a module's error, in characters. */
const MESSAGE_MAX = 16_000;
const PLACE = /^\d{1,7}:\d{1,7}$/;

/** The codes that a module's error may keep when it leaves the sandbox, and the hint for each. */
const HINTS = {
  BAD_ARGUMENTS: `${NOTHING_RAN}. Correct the arguments and call again`,
  PATH_OUTSIDE_WORKSPACE: "Use a path in the workspace, or ask the user for a grant",
  PATH_PROTECTED: "Only the user can open this path",
  SANDBOX_DENIED: "Ask the user for a grant, if this access has one",
  RESULT_TOO_LARGE: `The tool did run. ${ASK_FOR_LESS}`,
  OUTPUT_INVALID:
    "The tool did run. The module has to return plain JSON that matches its outputSchema",
};

const FILES = "files this way: a module uses the functions of Deno";
/** Alternatives to an access that Deno denied, by the kind of access. */
const DENIALS: Readonly<Record<string, string>> = {
  env: "the environment: this module has no env grant (host.env)",
  net: `the network: ${NET}`,
  run: "other programs: this module has no run grant (host.exec)",
  read: FILES,
  write: FILES,
  import: "this import: a module is one file",
};

/** An error that the module itself threw. */
export class ModuleFailure extends Error {
  override readonly name: string;
  /** The line and column in the module, such as `3:7`, where the error was created. */
  readonly at: string | undefined;

  /** Creates an error with the name, the message and the place of the thrown error. */
  constructor(name: string, message: string, at?: string) {
    super(message);
    this.name = name;
    this.at = at;
  }
}

/** Returns an error with one of the codes of `HINTS` and the hint of the code. */
export function sandboxError(
  code: keyof typeof HINTS,
  message: string,
  more: Omit<PmlErrorOptions, "hint"> = {},
): PmlError {
  return new PmlError(code, message, { hint: HINTS[code], ...more });
}

/** Returns the error for a value that a child sent. */
export function failureFrom(value: Json): PmlError | ModuleFailure {
  const fields = objectOf(value);
  const name = (textOf(fields.name) || "Error").slice(0, 200);
  const message = textOf(fields.message).slice(0, MESSAGE_MAX);
  if (isCode(fields.code)) return sandboxError(fields.code, message);
  const denial = denialIn(name, message);
  return denial === undefined
    ? new ModuleFailure(name, message, PLACE.exec(textOf(fields.at))?.[0])
    : sandboxError("SANDBOX_DENIED", denial);
}

function isCode(code: unknown): code is keyof typeof HINTS {
  return typeof code === "string" && Object.hasOwn(HINTS, code);
}

/**
 * Recognizes an access that Deno itself denied (`Deno.env`, `node:fs`, a computed import) and
 * returns PML's text for it.
 */
function denialIn(name: string, message: string): string | undefined {
  const kind = /--no-(npm|remote)|--cached-only/.test(message)
    ? "import"
    : /^Requires (\w+) access/.exec(message)?.[1];
  if (kind !== undefined) return `Cannot use ${DENIALS[kind] ?? `${kind} access: it is denied`}`;
  return name === "NotCapable" ? message : undefined;
}
