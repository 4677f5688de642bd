/**
 * One thing that was tried on this machine, and how it came out.
 *
 * @module
 */

import { asPmlError } from "./errors.ts";
import { defined } from "./json.ts";

/** What was found, and what to do where it is not well. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly said: string;
  readonly hint?: string;
}

/** Tries something; `said` tells what it means that it works. */
export async function check(
  name: string,
  said: string,
  attempt: () => Promise<void>,
): Promise<Check> {
  try {
    await attempt();
    return { name, ok: true, said };
  } catch (error) {
    const { message, hint } = asPmlError(error);
    return { name, ok: false, said: message, ...defined({ hint }) };
  }
}
