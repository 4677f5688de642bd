/**
 * Reads the rows of keys, which are the same in both stores.
 *
 * @module
 */

import type { KeyKind, KeyRecord } from "./store.ts";

/** A row of a key. */
export interface KeyRow {
  readonly id: string;
  readonly owner: string;
  readonly kind: KeyKind;
  readonly created: string;
  readonly revoked: string | null;
}

/** The query of all keys, without an order. */
export const KEYS = "SELECT id, owner, kind, created, revoked FROM keys";

/** Converts a row. */
export function keyRecordOf({ id, owner, kind, created, revoked }: KeyRow): KeyRecord {
  return {
    id,
    owner,
    kind,
    created: new Date(created),
    ...revoked !== null && { revoked: new Date(revoked) },
  };
}
