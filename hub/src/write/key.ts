/**
 * The keys of those who publish. A hub keeps their hashes only.
 *
 * @module
 */

import { integrityOf } from "@casys/pml/registry";
import { keyIdOf } from "../store/key_id.ts";

const BEGIN = "pmlhub_";
const BYTES = 32;
const KEY = /^pmlhub_[A-Za-z0-9_-]{43}$/;
const HEADER = /^bearer +(\S+)$/i;

/** Makes a key, which is shown once. */
export function newKey(): { readonly id: string; readonly key: string; readonly hash: string } {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  const key = BEGIN + bytes.toBase64({ alphabet: "base64url", omitPadding: true });
  const hash = hashOf(key);
  return { id: keyIdOf(hash), key, hash };
}

/** Returns the hash of the key in the header `authorization`; nothing if it has none. */
export function keyHashOf(authorization: string | undefined): string | undefined {
  const [, key = ""] = HEADER.exec(authorization ?? "") ?? [];
  return KEY.test(key) ? hashOf(key) : undefined;
}

function hashOf(key: string): string {
  return integrityOf(new TextEncoder().encode(key));
}
