/**
 * Replaces functions that a module cannot use by errors that name an alternative.
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
  return { ...refused, fetch: () => Promise.try(() => refused.fetch?.()) };
}

function refusals(before: string, names: Denied["global"]): Record<string, () => never> {
  const refused: Record<string, () => never> = {};
  for (const [why, list] of Object.entries(names)) {
    for (const name of list.split(" ")) {
      // Not an arrow function, because some of them are called with `new`.
      refused[name] = function () {
        throw deniedFunction(`Cannot use ${before}${name}: ${why}`);
      };
    }
  }
  return refused;
}
