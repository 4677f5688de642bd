/**
 * Makes errors that a model can act on.
 *
 * @module
 */

import type { Host } from "./call.ts";

export const NOT_TEXT = "it is not UTF-8 text; read_media_file reads any file";
export const NO_FOLDER = "its folder does not exist; make it with create_directory";
const REASONS: Readonly<Record<string, string>> = {
  NotFound: "no such file or folder",
  IsADirectory: "it is a folder",
  NotADirectory: "it, or a part of its path, is not a folder",
  PermissionDenied: Deno.build.os === "windows"
    ? "the system denies access, or another program has it open"
    : "the system denies access",
  EBUSY: "another program has it open",
  FilesystemLoop: "its links go round in a circle",
  ENAMETOOLONG: "its name is too long",
};

/** Returns the attempted action, with which an error message begins. */
export function actionText(doing: string, path: string): string {
  return `Cannot ${doing} ${quoted(path)}`;
}

/** Returns a path in quotes, cut after 200 characters. */
export function quoted(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

/** Returns an error. `what` is a result of `actionText()`; `why` is the reason. */
export function fail(what: string, why: string, cause?: unknown): Error {
  return new Error(`${what}: ${why}`, { cause });
}

/** Waits for `work`. Adds a reason to errors of the system. Throws other errors unchanged. */
export async function withReason<T>(what: string, work: Promise<T>, reasons = REASONS): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { name, code }: { name?: unknown; code?: unknown } = Object(error);
    // Errors of the sandbox have their own codes. Codes of the system begin with E, such as ENOENT.
    if (code !== undefined && !/^E[A-Z]+$/.test(String(code))) throw error;
    const reasonsByCode = { ...REASONS, ...reasons };
    const why = reasonsByCode[String(code)] ?? reasonsByCode[String(name)];
    throw why === undefined ? error : fail(what, why, error);
  }
}

/** Returns undefined for a file that does not exist. Throws every other error. */
export function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/**
 * Waits for `looking`, the information about a file. If the file does not exist, calls `use()`: the
 * sandbox allows looking at a protected name, but refuses its use whether or not the file exists. So
 * the error does not show whether a protected file exists.
 */
export async function withAccessCheck<T>(
  looking: Promise<T>,
  use: () => Promise<unknown>,
): Promise<T> {
  try {
    return await looking;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) await use();
    throw error;
  }
}

/** Reports progress after every 1,000 entries. Throws if the call was cancelled. */
export function reportStep({ signal, progress }: Host, index: number): void {
  signal?.throwIfAborted();
  if (index % 1_000 === 999) progress?.({ progress: index, message: `${index + 1} entries seen` });
}
