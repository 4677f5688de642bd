/**
 * The result of one check of this machine.
 *
 * @module
 */

import { asPmlError } from "./errors.ts";
import { defined } from "./json.ts";

/** The result of a check, with a hint if it failed. */
export interface CheckReport {
  readonly name: string;
  /** False where the user must do something before it works. */
  readonly ok: boolean;
  /** Whether it works, but the user should know something. */
  readonly warns?: boolean;
  readonly message: string;
  readonly hint?: string;
}

/**
 * Runs a check. The report has the text of the attempt, or `success` if the attempt returns none. The
 * report of a failure has the text of the error.
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
    return { name, ok: false, message: message, ...defined({ hint }) };
  }
}
