/**
 * Limits the changes that each key makes in a minute. The store counts them, so several hubs on one
 * store share the limit.
 *
 * @module
 */

import type { Sql } from "./_sql.ts";
import type { Refusal } from "./store.ts";

/** The number of changes that a key had left at the time `at`, in seconds since 1970. */
export interface TurnsLeft {
  readonly turns: number;
  readonly at: number;
}

const MINUTE = 60;
const TAKE_TURN = takeTurnSql({ values: ["?1", "?2", "?3"], least: "min", greatest: "max" });

/**
 * Returns the SQL statement that counts a change of a valid key. The statement returns a row if the
 * key may make the change. `values` are the hash of the key, the limit per minute, and the time in seconds.
 */
export function takeTurnSql(
  { values: [hash, most, now], least, greatest }: {
    readonly values: readonly [hash: string, most: string, now: string];
    /** The SQL functions that return the smaller and the larger of two numbers. */
    readonly least: string;
    readonly greatest: string;
  },
): string {
  const available = `${least}(${most}, turns.turns
    + (${greatest}(excluded.at, turns.at) - turns.at) * ${most} / ${MINUTE}.0)`;
  return `INSERT INTO turns (hash, turns, at)
    SELECT hash, ${most} - 1, ${now} FROM keys
    WHERE hash = ${hash} AND kind = 'publisher' AND revoked IS NULL
    ON CONFLICT (hash) DO UPDATE SET turns = ${available} - 1, at = ${greatest}(excluded.at, turns.at)
    WHERE ${available} >= 1 RETURNING hash`;
}

/** Returns the number of seconds until a key may make its next change. */
export function secondsToWait(
  { turns, at }: TurnsLeft,
  { most, now }: { readonly most: number; readonly now: number },
): number {
  const available = turns + Math.max(0, now - at) * most / MINUTE;
  return Math.max(1, Math.ceil((1 - available) * MINUTE / most));
}

/** Counts a change of a key in the embedded store. Returns the refusal if the key has no turns. */
export function takeTurn(sql: Sql, hash: string, most: number): Refusal | undefined {
  const now = Date.now() / 1_000;
  // Reads the key first: a request with an invalid key must not write, which would delay others.
  const row = sql.get(
    `SELECT coalesce(t.turns, 0) AS turns, coalesce(t.at, 0) AS at
     FROM keys LEFT JOIN turns t USING (hash)
     WHERE hash = ? AND kind = 'publisher' AND revoked IS NULL`,
    [hash],
  );
  if (row === undefined) return { why: "key" };
  if (sql.get(TAKE_TURN, [hash, most, now]) !== undefined) return undefined;
  const { turns, at } = row as unknown as TurnsLeft; // the query selects them
  return { why: "rate", seconds: secondsToWait({ turns, at }, { most, now }) };
}
