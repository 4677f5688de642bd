/**
 * The problems of a configuration, and the one error that reports them.
 *
 * @module
 */

import { PmlError, shownPlace } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** One problem of a configuration. */
export interface ConfigProblem {
  /** The path of the file, or the name of the variable. */
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  /** The path of keys; empty for the file itself. */
  readonly key: string;
  readonly found: string;
  readonly wanted: string;
  /** Set if two servers have the same name. */
  readonly code?: "NAME_CONFLICT";
}

/** The problems and warnings of all files of a configuration. */
export interface Report {
  readonly problems: ConfigProblem[];
  readonly warnings: string[];
  /** The hint of the error, if the user cannot correct the problems. */
  hint?: string;
}

/** The maximum number of problems in the message. The detail contains all problems. */
const SHOWN_MAX = 3;

/** Returns one error for all problems. */
export function invalidConfigError(
  problems: readonly ConfigProblem[],
  more: { readonly hint?: string; readonly cause?: unknown } = {},
): PmlError {
  const conflict = problems.every(({ code }) => code !== undefined);
  const rest = problems.length - SHOWN_MAX;
  const texts = problems.slice(0, SHOWN_MAX).map(problemText).join("; ");
  const message = `Cannot use the configuration: ${texts}${rest > 0 ? `; and ${rest} more` : ""}`;
  return new PmlError(conflict ? "NAME_CONFLICT" : "CONFIG_INVALID", message, {
    hint: "Fix it and save: PML reads it again without a restart",
    ...more,
    detail: { problems },
  });
}

function problemText({ file, key, found, wanted, ...place }: ConfigProblem): string {
  const at = key === "" ? "" : `, key ${quoted(key, 200)}`;
  return `${quoted(shownPlace(file, place), 200)}${at}: found ${found}, wanted ${wanted}`;
}
