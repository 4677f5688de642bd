/**
 * The error for an entry of a registry that cannot be used.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { quoted } from "../core/json.ts";

/** An entry, and what is wrong with it. */
export interface BadEntry {
  readonly name: string;
  /** The URL of its registry. */
  readonly url: string;
  readonly why: string;
  readonly hint?: string;
}

/** Makes the error for an entry that cannot be used. */
export function badEntry(
  { name, url, why, hint = "Tell the registry's owner; nothing of this entry was used" }: BadEntry,
): PmlError {
  const message = `Cannot use the entry ${quoted(name)} of ${quoted(url, 200)}: ${why}`;
  return new PmlError("REGISTRY_BAD_RESPONSE", message, { hint });
}
