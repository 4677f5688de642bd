/**
 * The only error class of PML, the closed list of its codes, and who must act on each code.
 *
 * @module
 */

/**
 * The receiver of an error: the client (a JSON-RPC error), the model (a result), or the operator
 * (stderr).
 */
export type Audience = "client" | "model" | "operator";

/** All error codes. The list is closed. */
export const ERROR_CODES = [
  "UNKNOWN_TOOL",
  "BAD_REQUEST",
  "INPUT_TOO_LARGE",
  "BUG",
  "CONFIG_INVALID",
  "USAGE",
  "BAD_ARGUMENTS",
  "PERMISSION_DENIED",
  "PAUSED",
  "APPROVAL_REQUIRED",
  "APPROVAL_DECLINED",
  "APPROVAL_STALE",
  "WORKSPACE_UNTRUSTED",
  "PATH_OUTSIDE_WORKSPACE",
  "PATH_PROTECTED",
  "SANDBOX_DENIED",
  "SANDBOX_CRASHED",
  "KEY_MISSING",
  "CLOUD_KEY_REQUIRED",
  "CLOUD_KEY_REJECTED",
  "LOGIN_REQUIRED",
  "REGISTRY_OFFLINE",
  "REGISTRY_BAD_RESPONSE",
  "NAME_INVALID",
  "NAME_CONFLICT",
  "INTEGRITY_MISMATCH",
  "UPSTREAM_DOWN",
  "UPSTREAM_PROTOCOL",
  "OUTPUT_INVALID",
  "TIMED_OUT",
  "CANCELLED",
  "RESULT_TOO_LARGE",
  "OVERLOADED",
  "AUDIT_UNAVAILABLE",
] as const;

/** One of the error codes. */
export type ErrorCode = typeof ERROR_CODES[number];

const FOR_CLIENT: readonly ErrorCode[] = ["UNKNOWN_TOOL", "BAD_REQUEST", "INPUT_TOO_LARGE", "BUG"];
const FOR_OPERATOR: readonly ErrorCode[] = ["CONFIG_INVALID", "USAGE"];

/** The options of a `PmlError`. */
export interface PmlErrorOptions {
  /** One action that solves the problem, for the user or the model. */
  readonly hint?: string;
  /** The error that led to this one. */
  readonly cause?: unknown;
  /** Facts for programs. They must be JSON. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/**
 * An error with a code of the closed list. The message has the attempted action and the reason. The
 * hint is one action.
 *
 * @example
 * ```ts
 * import { openGateway, PmlError } from "@casys/pml";
 *
 * await using gateway = await openGateway();
 * try {
 *   await gateway.callTool("read_file");
 * } catch (error) {
 *   if (!(error instanceof PmlError)) throw error;
 *   console.error(`${error.code}: ${error.message}`, error.hint);
 * }
 * ```
 */
export class PmlError extends Error {
  /** Always `PmlError`. */
  override readonly name = "PmlError";
  /** The code of the error. */
  readonly code: ErrorCode;
  /** The hint: what to do, if anything can be done. */
  readonly hint: string | undefined;
  /** Facts for programs. */
  readonly detail: Readonly<Record<string, unknown>> | undefined;

  /** Creates an error. The message has the attempted action and the reason. */
  constructor(code: ErrorCode, message: string, options: PmlErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.detail = options.detail;
  }
}

/**
 * The first words of the hint of an error if PML refused a call before the call ran, and the
 * model's step after the user's approval. A run replaces both, because its other calls may have run.
 */
export const NOTHING_RAN = "Nothing was run";
export const SAME_CALL_AGAIN = "make exactly this call again";

/**
 * Codes of errors after which a call may have run. The error's own `may_have_run` has priority.
 */
const MAY_HAVE_RUN = /^(TIMED_OUT|CANCELLED|SANDBOX_CRASHED|UPSTREAM_.+|OUTPUT_.+|RESULT_.+|BUG)$/;

/** Returns whether a call that failed with this error may have run. */
export function mayHaveRun({ code, detail }: PmlError): boolean {
  const fact = detail?.may_have_run;
  return typeof fact === "boolean" ? fact : MAY_HAVE_RUN.test(code);
}

/** Returns the error for work that PML stops, or does not begin, because the process is ending. */
export function endingError(what: string): PmlError {
  return new PmlError("CANCELLED", `Cannot ${what}: PML is ending`);
}

/** Returns the hint for a key that is missing. */
export function keyHint(name = "NAME"): string {
  return `Run \`pml key set ${name}\`, or set it where you start pml`;
}

/**
 * Returns who must act on an error with this code.
 *
 * @example
 * ```ts
 * import assert from "node:assert/strict";
 * import { audienceOf } from "@casys/pml";
 *
 * assert.equal(audienceOf("CONFIG_INVALID"), "operator");
 * assert.equal(audienceOf("PERMISSION_DENIED"), "model");
 * assert.equal(audienceOf("UNKNOWN_TOOL"), "client");
 * ```
 */
export function audienceOf(code: ErrorCode): Audience {
  if (FOR_CLIENT.includes(code)) return "client";
  return FOR_OPERATOR.includes(code) ? "operator" : "model";
}

/** Returns the message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Returns a `PmlError` unchanged. Turns any other error into a `PmlError`: UPSTREAM_DOWN for a
 * package that cannot be fetched, OVERLOADED for a resource of the system that is used up (such as
 * a full disk), otherwise BUG.
 */
export function asPmlError(error: unknown): PmlError {
  if (error instanceof PmlError) return error;
  const failure = loadFailure(error);
  if (failure !== undefined) return failure;
  const message = messageOf(error);
  const [, hint] = SYSTEM_FAILURES.find(([pattern]) => pattern.test(message)) ?? [];
  return new PmlError(
    hint === undefined ? "BUG" : "OVERLOADED",
    `Cannot finish the call: ${message}`,
    {
      cause: error,
      hint: hint ?? "This is a bug in PML: please report it with the log of stderr",
    },
  );
}

/**
 * The messages of Deno for npm packages and files that it can neither fetch nor find in its cache.
 */
const PACKAGE_FAILURES = [
  /^Failed caching npm package '([^']+)'/,
  /^Failed loading \S+ for package "([^"]+)"/,
  /^npm package not found in cache: "([^"]+)"/,
];
const FILE_FAILURES = [
  /^Import '([^']+)' failed/,
  /^Specifier not found in cache: "([^"]+)"/,
  /^JSR package manifest for '([^']+)' failed to load/,
];

/**
 * Returns a `PmlError` `UPSTREAM_DOWN` for a failed `import()` of a package, or of a file of PML,
 * that Deno had to fetch. Returns undefined for any other error.
 */
function loadFailure(error: unknown): PmlError | undefined {
  if (!(error instanceof TypeError) || Reflect.get(error, "code") !== "ERR_MODULE_NOT_FOUND") {
    return undefined;
  }
  const { message } = error;
  const nameIn = (patterns: readonly RegExp[]) =>
    patterns.map((pattern) => pattern.exec(message)?.[1]).find((name) => name !== undefined);
  const name = nameIn(PACKAGE_FAILURES);
  const file = name === undefined ? nameIn(FILE_FAILURES) : undefined;
  if (name === undefined && file === undefined) return undefined;
  // Deno lists the causes in numbered lines; the first one contains the others.
  const [, cause = message] = message.split(/\n *(?:\d+: )?/);
  return new PmlError(
    "UPSTREAM_DOWN",
    `Cannot load the ${name === undefined ? "file" : "package"} "${name ?? file}": ${cause}`,
    {
      cause: error,
      hint: name === undefined
        ? "Connect to the network and install PML again: its install line fetches all files"
        : "Connect to the network, run `pml install --offline-ready`, and start PML again",
    },
  );
}

/** The messages of the system about used-up resources, and the hint for each. */
const SYSTEM_FAILURES: readonly (readonly [message: RegExp, hint: string])[] = [
  [/no space left|quota exceeded/i, "Free some space on that disk, then try again"],
  [/read-only file system/i, "Make that file system writable, then try again"],
  [/too many open files/i, "End other programs, or raise `ulimit -n`"],
];

/** A place in a text. Lines and columns begin with 1. */
export interface TextPlace {
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

/** Returns a place as `file:line:column`, without the parts that are unknown. */
export function shownPlace(
  file: string,
  { line, column }: { readonly [key in keyof TextPlace]: number | string | undefined },
): string {
  return [file, line, column].filter(Boolean).join(":");
}

/** Returns the place of an offset in a text. */
export function placeAt(text: string, offset: number): Required<TextPlace> {
  const lines = text.slice(0, offset).split("\n");
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
}

/** Joins a message and its hint to one text, for receivers that show one text only. */
export function withHint(message: string, hint: string | undefined): string {
  if (hint === undefined || hint === "") return message;
  return /[.?!]$/.test(message) ? `${message} ${hint}` : `${message}. ${hint}`;
}
