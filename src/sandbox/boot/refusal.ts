/**
 * Errors of the broker, and how any error crosses to the Worker.
 *
 * @module
 */

import type { Failure } from "./message.ts";

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

/** Refuses an attempt on a path. */
export function refusal(code: string, attempt: Attempt, why: string): Refusal {
  return new Refusal(code, `Cannot ${attempt.op} ${shown(attempt.asked)}: ${why}`);
}

const SYSTEM = {
  NotFound: ["ENOENT", "No such file or directory (os error 2)"],
  AlreadyExists: ["EEXIST", "File exists (os error 17)"],
  NotADirectory: ["ENOTDIR", "Not a directory (os error 20)"],
  IsADirectory: ["EISDIR", "Is a directory (os error 21)"],
} as const;

/** Builds the error that the system gives in such a case. */
export function systemError(name: keyof typeof SYSTEM): Error {
  const [code, message] = SYSTEM[name];
  return Object.assign(new Deno.errors[name](message), { code });
}

/** Turns an error into what crosses; the system's own words name the path as it was asked for. */
export function failureOf(error: unknown, attempt: Attempt): Failure {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message } = error;
  const code = (error as { code?: unknown }).code;
  const said = error instanceof Refusal
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
