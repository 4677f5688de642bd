/**
 * Tells a failure to the person, and to a script where it asked for JSON.
 *
 * @module
 */

import { asPmlError, type ErrorCode, PmlError } from "../core/errors.ts";
import { printJson, tell } from "./out.ts";

/** What the hints that models get are called for a person. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  UNKNOWN_TOOL: "Find its name with `pml search` or `pml tools`",
  APPROVAL_DECLINED: "Nothing was run",
  BAD_ARGUMENTS: "Look at its arguments with `pml tools SERVER:TOOL`",
};

/** Tells a failure of what these arguments started, and gives the exit code that it stands for. */
export function report(error: unknown, args: readonly string[]): number {
  const { code, message, hint: said, detail } = asPmlError(error);
  const hint = HINTS[code] ?? said;
  const wrote = typeof detail?.stderr === "string" ? detail.stderr : "";
  const more = [hint, wrote && `It wrote: ${wrote.replaceAll("\n", "\n  ")}`].filter(Boolean);
  tell([`error: ${code}: ${message}`, ...more].join("\n  "));
  try {
    if (args.includes("--json")) printJson({ error: { code, message, hint, detail } });
  } catch {
    // Standard output fails, which stderr has told or the exit code tells.
  }
  return code === "USAGE" || code === "CONFIG_INVALID" ? 2 : 1;
}

/** Makes the error of somebody who typed what cannot be. */
export function usage(message: string, hint: string): PmlError {
  return new PmlError("USAGE", message, { hint });
}
