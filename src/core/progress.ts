/**
 * Reads reports of progress.
 *
 * @module
 */

import type { Progress } from "./call.ts";
import { defined } from "./json.ts";
import { safeText } from "./safe_text.ts";

/** Reads a report, with at most so many characters. Returns undefined if it is none. */
export function progressOf(
  { progress, total, message }: Readonly<Record<string, unknown>>,
  most = Infinity,
): Progress | undefined {
  // `1e400` reads as infinite, and would be written as null.
  if (!Number.isFinite(progress)) return undefined;
  return defined({
    progress: Number(progress),
    total: Number.isFinite(total) ? Number(total) : undefined,
    message: typeof message === "string" ? safeText(message.slice(0, most)) : undefined,
  });
}
