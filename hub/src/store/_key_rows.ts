/**
 * Reads the rows of keys, which are the same in both stores.
 *
 * @module
 */

import type { KeyKind, KeyRecord } from "./store.ts";

/** A row of `KEYS`. */
export interface KeyRow {
  readonly id: string;
  readonly owner: string;
  readonly kind: KeyKind;
  readonly created: string;
  readonly revoked: string | null;
}

/** Selects all keys; callers add the order. */
export const KEYS = "SELECT id, owner, kind, created, revoked FROM keys";

/** Converts a row of a key. */
export function keyRecordOf({ id, owner, kind, created, revoked }: KeyRow): KeyRecord {
  return {
    id,
    owner,
    kind,
    created: new Date(created),
    ...revoked !== null && { revoked: new Date(revoked) },
  };
}
