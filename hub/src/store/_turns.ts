/**
 * How often each key may change something. The store counts, so several hubs count together.
 *
 * @module
 */

import type { Sql } from "./_sql.ts";
import type { Refusal } from "./store.ts";

/** The changes that a key may still make, and when that was so, in seconds. */
export interface Left {
  readonly turns: number;
  readonly at: number;
}

const MINUTE = 60;
const TAKING = takingTurn({ values: ["?1", "?2", "?3"], least: "min", greatest: "max" });

/**
 * Returns the statement that takes a turn of a key that is valid, and returns a row if it had one.
 * Its values are the hash of the key, the turns of a minute, and the time in seconds.
 */
export function takingTurn(
  { values: [hash, most, now], least, greatest }: {
    readonly values: readonly [hash: string, most: string, now: string];
    /** The functions of the smaller and the larger of two numbers. */
    readonly least: string;
    readonly greatest: string;
  },
): string {
  const grown = `${least}(${most}, turns.turns
    + (${greatest}(excluded.at, turns.at) - turns.at) * ${most} / ${MINUTE}.0)`;
  return `INSERT INTO turns (hash, turns, at)
    SELECT hash, ${most} - 1, ${now} FROM keys
    WHERE hash = ${hash} AND kind = 'publisher' AND revoked IS NULL
    ON CONFLICT (hash) DO UPDATE SET turns = ${grown} - 1, at = ${greatest}(excluded.at, turns.at)
    WHERE ${grown} >= 1 RETURNING hash`;
}

/** Returns how many seconds a key waits that has no turn left. */
export function waitOf(
  { turns, at }: Left,
  { most, now }: { readonly most: number; readonly now: number },
): number {
  const grown = turns + Math.max(0, now - at) * most / MINUTE;
  return Math.max(1, Math.ceil((1 - grown) * MINUTE / most));
}

/** Takes a turn in the embedded store. */
export function takeTurn(sql: Sql, hash: string, most: number): Refusal | undefined {
  const now = Date.now() / 1_000;
  // A request without a key must not delay writers.
  const left = sql.get(
    `SELECT coalesce(t.turns, 0) AS turns, coalesce(t.at, 0) AS at
     FROM keys LEFT JOIN turns t USING (hash)
     WHERE hash = ? AND kind = 'publisher' AND revoked IS NULL`,
    [hash],
  );
  if (left === undefined) return { why: "key" };
  if (sql.get(TAKING, [hash, most, now]) !== undefined) return undefined;
  const { turns, at } = left as unknown as Left; // of these columns
  return { why: "rate", seconds: waitOf({ turns, at }, { most, now }) };
}
