/**
 * Errors of the broker, and how any error crosses to the Worker.
 *
 * @module
 */

import type { Failure, Reply } from "./message.ts";

/** A refusal in words that cross as they are: a `NotCapable` with a code of PML, unless said. */
export class Refusal extends Error {
  override readonly name: string;
  /** `PATH_OUTSIDE_WORKSPACE`, `PATH_PROTECTED`, `SANDBOX_DENIED` or `RESULT_TOO_LARGE`. */
  readonly code: string;

  /** Says what was tried and what is so. */
  constructor(code: string, message: string, name = "NotCapable") {
    super(message);
    this.name = name;
    this.code = code;
  }
}

/** What was tried, for messages. */
export interface Attempt {
  readonly op: string;
  readonly asked: string;
}

/** Counts what a child writes to files, up to its limit. */
export class Budget {
  readonly #bytes: number;
  #left: number;

  /** Takes the limit. */
  constructor(bytes: number) {
    this.#bytes = this.#left = bytes;
  }

  /** Takes what a step may add to files at most, before it is done. */
  take(bytes: number, attempt: Attempt): void {
    if (bytes > this.#left) {
      const why =
        `a module writes at most ${this.#bytes} bytes (limits.write_bytes) to files until it ` +
        "is started anew";
      throw refusal("SANDBOX_DENIED", attempt, why);
    }
    this.#left -= Math.max(bytes, 0);
  }

  /** How many bytes are left; below nothing where a step added more than was known before. */
  get left(): number {
    return this.#left;
  }

  /** Counts what a step has added. */
  spend(bytes: number): void {
    this.#left -= Math.max(bytes, 0);
  }
}

/** Refuses an attempt on a path. */
export function refusal(code: string, attempt: Attempt, why: string): Refusal {
  return new Refusal(code, `Cannot ${attempt.op} ${shown(attempt.asked)}: ${why}`);
}

const SYSTEM = {
  NotFound: ["ENOENT", "No such file or directory (os error 2)"],
  AlreadyExists: ["EEXIST", "File exists (os error 17)"],
  NotADirectory: ["ENOTDIR", "Not a directory (os error 20)"],
  IsADirectory: ["EISDIR", "Is a directory (os error 21)"],
  NameTooLong: ["ENAMETOOLONG", "File name too long (os error 36)"],
  Invalid: ["EINVAL", "Invalid argument (os error 22)"],
} as const;

/** Builds the error that the system gives in such a case. */
export function systemError(name: keyof typeof SYSTEM): Error {
  const [code, message] = SYSTEM[name];
  // Deno has no class of its own for these two.
  const classes = { ...Deno.errors, NameTooLong: Error, Invalid: TypeError };
  return Object.assign(new classes[name](message), { code });
}

/** Answers a request that failed. */
export function failed(
  error: unknown,
  { op, args: [asked] }: { readonly op: string; readonly args: readonly unknown[] },
): Reply {
  return {
    ok: false,
    error: failureOf(error, { op, asked: typeof asked === "string" ? asked : "" }),
  };
}

/** Turns an error into what crosses; the system's own words name the path as it was asked for. */
export function failureOf(error: unknown, attempt: Attempt): Failure {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message } = error;
  const code = (error as { code?: unknown }).code;
  const said = error instanceof Refusal || attempt.asked === ""
    ? message
    : `${message.replace(/: \w+ '[^]*$/, "")}: ${attempt.op} ${shown(attempt.asked)}`;
  return { name, message: said, ...(typeof code === "string" ? { code } : {}) };
}

/** Writes a text between quotes, cut, with what cannot be seen made visible. */
export function shown(path: string): string {
  const cut = path.length > 200 ? `${path.slice(0, 200)}…` : path;
  return `"${
    cut.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0)?.toString(16)}}`)
  }"`;
}
