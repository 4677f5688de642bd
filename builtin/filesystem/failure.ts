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

/** Returns the start of an error message. */
export function cannot(doing: string, path: string): string {
  return `Cannot ${doing} ${quoted(path)}`;
}

/** Returns a path in quotes, cut if it is long. */
export function quoted(path: string): string {
  return JSON.stringify(path.length > 200 ? `${path.slice(0, 200)}…` : path);
}

/** Returns an error with the attempted action and the reason. */
export function fail(what: string, why: string, cause?: unknown): Error {
  return new Error(`${what}: ${why}`, { cause });
}

/** Waits for `work`, and explains an error of the system. Other errors pass unchanged. */
export async function tried<T>(what: string, work: Promise<T>, reasons = REASONS): Promise<T> {
  try {
    return await work;
  } catch (error) {
    const { name, code }: { name?: unknown; code?: unknown } = Object(error);
    // Errors of the sandbox have other codes than those of the system, such as ENOENT.
    if (code !== undefined && !/^E[A-Z]+$/.test(String(code))) throw error;
    const known = { ...REASONS, ...reasons };
    const why = known[String(code)] ?? known[String(name)];
    throw why === undefined ? error : fail(what, why, error);
  }
}

/** Returns undefined for a file that does not exist. Throws every other error. */
export function absent(error: unknown): undefined {
  if (!(error instanceof Deno.errors.NotFound)) throw error;
}

/** Reports progress now and then. Throws if the call was cancelled. */
export function step({ signal, progress }: Host, seen: number): void {
  signal?.throwIfAborted();
  if (seen % 1_000 === 999) progress?.({ progress: seen, message: `${seen + 1} entries seen` });
}
