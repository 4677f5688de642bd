/**
 * Replaces functions that a module cannot use with functions whose errors name an alternative.
 *
 * @module
 */

import { deniedFunction } from "./host_client.ts";
import type { Denied } from "./message.ts";

/**
 * Returns replacements for the functions of `Deno` that a module cannot use. `Deno.env` and
 * functions that describe the machine stay, because built-in Node modules use them; without a
 * permission they return nothing.
 */
export function deniedInDeno({ inDeno }: Denied): Record<string, unknown> {
  return refusals("Deno.", inDeno);
}

/** Returns replacements for the globals that a module cannot use. */
export function deniedGlobals({ global }: Denied): Record<string, unknown> {
  const refused = refusals("", global);
  // `fetch()` rejects, and does not throw, so that a module can handle the error as usual.
  return { ...refused, fetch: () => Promise.try(() => refused.fetch?.()) };
}

/** Returns the functions. `names` has the names, separated by blanks, for each reason. */
function refusals(prefix: string, names: Denied["global"]): Record<string, () => never> {
  const refused: Record<string, () => never> = {};
  for (const [why, list] of Object.entries(names)) {
    for (const name of list.split(" ")) {
      // Not an arrow function, because modules call some of these functions with `new`.
      refused[name] = function () {
        throw deniedFunction(`Cannot use ${prefix}${name}: ${why}`);
      };
    }
  }
  return refused;
}
