/**
 * The result of one check of this machine.
 *
 * @module
 */

import { asPmlError } from "./errors.ts";
import { withoutUndefined } from "./json.ts";

/** The result of a check, with a hint if it failed. */
export interface CheckReport {
  readonly name: string;
  /** False if the user must fix something first. */
  readonly ok: boolean;
  /** Whether the check passed, but with a warning. */
  readonly warns?: boolean;
  readonly message: string;
  readonly hint?: string;
}

/**
 * Runs a check. The message of the report is the text that `attempt` returns, or `success` if it
 * returns none, or the message of its error.
 */
export async function runCheck(
  name: string,
  success: string,
  attempt: () => string | void | Promise<string | void>,
): Promise<CheckReport> {
  try {
    return { name, ok: true, message: await attempt() ?? success };
  } catch (error) {
    const { message, hint } = asPmlError(error);
    return { name, ok: false, message, ...withoutUndefined({ hint }) };
  }
}
