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
  readonly said: string;
  readonly hint?: string;
}

/**
 * Runs a check. `said` is the text for success, unless the attempt returns another one. A failure has
 * the text of its error.
 */
export async function runCheck(
  name: string,
  said: string,
  attempt: () => string | void | Promise<string | void>,
): Promise<CheckReport> {
  try {
    return { name, ok: true, said: await attempt() ?? said };
  } catch (error) {
    const { message, hint } = asPmlError(error);
    return { name, ok: false, said: message, ...defined({ hint }) };
  }
}
