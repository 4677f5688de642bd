/**
 * Errors of the broker, and the conversion of errors for the Worker.
 *
 * @module
 */

import type { HostReply, SentError } from "./message.ts";

/**
 * A refusal whose message is sent unchanged. Its name is `NotCapable` by default.
 */
export class SandboxRefusal extends Error {
  override readonly name: string;
  /** `PATH_OUTSIDE_WORKSPACE`, `PATH_PROTECTED`, `SANDBOX_DENIED` or `RESULT_TOO_LARGE`. */
  readonly code: string;

  /** Creates a refusal. The message contains the attempted action and the reason. */
  constructor(code: string, message: string, name = "NotCapable") {
    super(message);
    this.name = name;
    this.code = code;
  }
}

/** An attempted action, for messages. */
export interface Attempt {
  readonly op: string;
  readonly requestedPath: string;
}

/** Counts the bytes that a child writes to files, up to its limit. */
export class WriteBudget {
  readonly #limit: number;
  #remaining: number;

  /** Creates a budget with a limit in bytes. */
  constructor(bytes: number) {
    this.#limit = this.#remaining = bytes;
  }

  /**
   * Counts the maximum number of bytes that a step can add to files, before the step. Throws if
   * that exceeds the limit.
   */
  take(bytes: number, attempt: Attempt): void {
    if (bytes > this.#remaining) {
      const why =
        `a module writes at most ${this.#limit} bytes (limits.write_bytes) to files until it ` +
        "is started anew";
      throw refusalOf("SANDBOX_DENIED", attempt, why);
    }
    this.#remaining -= Math.max(bytes, 0);
  }

  /** The number of remaining bytes. Negative if a step wrote more bytes than it had counted before. */
  get remaining(): number {
    return this.#remaining;
  }

  /** Counts the bytes that a step has added. */
  spend(bytes: number): void {
    this.#remaining -= Math.max(bytes, 0);
  }
}

/** Returns the refusal of an attempt on a path. */
export function refusalOf(code: string, attempt: Attempt, why: string): SandboxRefusal {
  return new SandboxRefusal(
    code,
    `Cannot ${attempt.op} ${quotedPath(attempt.requestedPath)}: ${why}`,
  );
}

const SYSTEM = {
  NotFound: ["ENOENT", "No such file or directory (os error 2)"],
  AlreadyExists: ["EEXIST", "File exists (os error 17)"],
  NotADirectory: ["ENOTDIR", "Not a directory (os error 20)"],
  IsADirectory: ["EISDIR", "Is a directory (os error 21)"],
  NameTooLong: ["ENAMETOOLONG", "File name too long (os error 36)"],
  Invalid: ["EINVAL", "Invalid argument (os error 22)"],
} as const;

/** Returns the error that the system would throw. */
export function systemError(name: keyof typeof SYSTEM): Error {
  const [code, message] = SYSTEM[name];
  // Deno has no classes for NameTooLong and Invalid.
  const classes = { ...Deno.errors, NameTooLong: Error, Invalid: TypeError };
  return Object.assign(new classes[name](message), { code });
}

/** Returns the answer to a request that failed. */
export function failureReply(
  error: unknown,
  { op, args: [path] }: { readonly op: string; readonly args: readonly unknown[] },
): HostReply {
  return {
    ok: false,
    error: sentErrorOf(error, { op, requestedPath: typeof path === "string" ? path : "" }),
  };
}

/**
 * Returns an error in the form that is sent. Replaces the path in an error of the system by the
 * path that the module passed.
 */
export function sentErrorOf(error: unknown, attempt: Attempt): SentError {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message } = error;
  const code = (error as { code?: unknown }).code;
  const text = error instanceof SandboxRefusal || attempt.requestedPath === ""
    ? message
    : `${message.replace(/: \w+ '[^]*$/, "")}: ${attempt.op} ${quotedPath(attempt.requestedPath)}`;
  return { name, message: text, ...(typeof code === "string" ? { code } : {}) };
}

/** Returns a text in quotes, truncated and with visible escapes for invisible characters. */
export function quotedPath(path: string): string {
  const cut = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return `"${
    cut.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
      `\\u{${character.codePointAt(0)?.toString(16)}}`)
  }"`;
}
