/**
 * Creates and parses the keys of publishers and clients. A hub stores only their hashes.
 *
 * @module
 */

import { integrityOf } from "@casys/pml/registry";
import { keyIdOf } from "../store/key_id.ts";
import type { KeyKind } from "../store/store.ts";

/** The beginning of the keys of each kind. */
const PREFIXES: Readonly<Record<KeyKind, string>> = { publisher: "pmlhub_", client: "pmlclient_" };
const BYTES = 32;
const KEY = /^(pml(?:hub|client)_)[A-Za-z0-9_-]{43}$/;
const HEADER = /^bearer +(\S+)$/i;

/** Creates a random key, with its id and its hash for the store. */
export function newKey(
  kind: KeyKind,
): { readonly id: string; readonly key: string; readonly hash: string } {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  const key = PREFIXES[kind] + bytes.toBase64({ alphabet: "base64url", omitPadding: true });
  const hash = hashOf(key);
  return { id: keyIdOf(hash), key, hash };
}

/** Returns the key in the header `authorization`; undefined if there is none. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return HEADER.exec(authorization ?? "")?.[1];
}

/** Returns the hash of a key; undefined if the text is not a key of this kind. */
export function keyHashOf(key: string | undefined, kind: KeyKind): string | undefined {
  const [, prefix] = KEY.exec(key ?? "") ?? [];
  return key !== undefined && prefix === PREFIXES[kind] ? hashOf(key) : undefined;
}

function hashOf(key: string): string {
  return integrityOf(new TextEncoder().encode(key));
}
