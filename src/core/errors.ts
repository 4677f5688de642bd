/**
 * The one error of PML: a closed list of codes, and who has to act on each.
 *
 * @module
 */

/** Who a failure is told to: the client as a JSON-RPC error, the model as a result, the operator on stderr. */
export type Audience = "client" | "model" | "operator";

/** Every error code: the list is closed. */
export const ERROR_CODES = [
  "UNKNOWN_TOOL",
  "BAD_REQUEST",
  "INPUT_TOO_LARGE",
  "BUG",
  "CONFIG_INVALID",
  "USAGE",
  "BAD_ARGUMENTS",
  "PERMISSION_DENIED",
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

/** One of the closed list of error codes. */
export type ErrorCode = typeof ERROR_CODES[number];

const FOR_CLIENT: readonly ErrorCode[] = ["UNKNOWN_TOOL", "BAD_REQUEST", "INPUT_TOO_LARGE", "BUG"];
const FOR_OPERATOR: readonly ErrorCode[] = ["CONFIG_INVALID", "USAGE"];

/** What an error carries beside its code and message. */
export interface PmlErrorOptions {
  /** What to do about it: one sentence for the person or the model that reads it. */
  readonly hint?: string;
  /** The error that led to this one. */
  readonly cause?: unknown;
  /** Facts for programs, JSON only. */
  readonly detail?: Readonly<Record<string, unknown>>;
}

/**
 * A failure with a code of the closed list. The message says what was tried and what is so;
 * the hint says what to do.
 */
export class PmlError extends Error {
  /** Always `PmlError`. */
  override readonly name = "PmlError";
  /** Which of the closed list this is. */
  readonly code: ErrorCode;
  /** What to do about it, if anything can be done. */
  readonly hint: string | undefined;
  /** Facts for programs. */
  readonly detail: Readonly<Record<string, unknown>> | undefined;

  /** Makes an error of `code` that says what was tried and what is so. */
  constructor(code: ErrorCode, message: string, options: PmlErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.hint = options.hint;
    this.detail = options.detail;
  }
}

/** Tells who has to act on an error of this code. */
export function audienceOf(code: ErrorCode): Audience {
  if (FOR_CLIENT.includes(code)) return "client";
  return FOR_OPERATOR.includes(code) ? "operator" : "model";
}

/** Gives a PmlError back as it is, and names anything else a bug of ours, with its cause. */
export function asPmlError(error: unknown): PmlError {
  if (error instanceof PmlError) return error;
  const said = error instanceof Error ? error.message : String(error);
  return new PmlError("BUG", `Cannot finish the call: ${said}`, {
    cause: error,
    hint: "This is a bug in PML: please report it with the log of stderr",
  });
}
