/**
 * The keys of publishers and of clients. A hub keeps their hashes only.
 *
 * @module
 */

import { integrityOf } from "@casys/pml/registry";
import { keyIdOf } from "../store/key_id.ts";
import type { KeyKind } from "../store/store.ts";

/** How keys begin. */
const BEGIN: Readonly<Record<KeyKind, string>> = { publisher: "pmlhub_", client: "pmlclient_" };
const BYTES = 32;
const KEY = /^(pml(?:hub|client)_)[A-Za-z0-9_-]{43}$/;
const HEADER = /^bearer +(\S+)$/i;

/** Makes a key, which is shown once. */
export function newKey(
  kind: KeyKind,
): { readonly id: string; readonly key: string; readonly hash: string } {
  const bytes = crypto.getRandomValues(new Uint8Array(BYTES));
  const key = BEGIN[kind] + bytes.toBase64({ alphabet: "base64url", omitPadding: true });
  const hash = hashOf(key);
  return { id: keyIdOf(hash), key, hash };
}

/** Returns the key in the header `authorization`; undefined if it has none. */
export function bearerOf(authorization: string | undefined): string | undefined {
  return HEADER.exec(authorization ?? "")?.[1];
}

/** Returns the hash of a key; undefined if the text is no key of this kind. */
export function keyHashOf(key: string | undefined, kind: KeyKind): string | undefined {
  const [, begin] = KEY.exec(key ?? "") ?? [];
  return key !== undefined && begin === BEGIN[kind] ? hashOf(key) : undefined;
}

function hashOf(key: string): string {
  return integrityOf(new TextEncoder().encode(key));
}
