/**
 * Reads reports of progress.
 *
 * @module
 */

import type { Progress } from "./call.ts";
import { defined } from "./json.ts";

const MESSAGE_MAX = 4_096;

/** Reads a report of a server or a module. Returns undefined if it is none. */
export function progressOf(
  { progress, total, message }: Readonly<Record<string, unknown>>,
): Progress | undefined {
  // `1e400` reads as infinite, and would be written as null.
  if (!Number.isFinite(progress)) return undefined;
  return defined({
    progress: Number(progress),
    total: Number.isFinite(total) ? Number(total) : undefined,
    message: typeof message === "string" ? message.slice(0, MESSAGE_MAX) : undefined,
  });
}
