/**
 * Divides long lists into pages.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import { invalidParams, optionalText } from "./_params.ts";

/** The maximum number of items of one page. */
const PAGE = 1_000;
/** Matches a cursor: the number of items before it, and the key of the last one. */
const CURSOR = /^(\d{1,9})-(.*)$/s;

/** A part of a list. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** How many items come before it. */
  readonly from: number;
  /** The member with the cursor of the next part, if there is one. */
  readonly more: { readonly nextCursor?: string };
}

/**
 * Returns the part of a list that a request asks for. The list may have changed meanwhile: the part
 * begins after the last item of the part before, at its present position. Throws for a cursor that
 * PML did not create.
 */
export function partOf<T>(
  all: readonly T[],
  params: JsonObject,
  keyOf: (item: T) => Json | undefined,
): ListPage<T> {
  const from = beginOf(all, keyOf, optionalText(params, "cursor"));
  const items = all.slice(from, from + PAGE);
  const end = from + items.length;
  const last = items.at(-1);
  return {
    items,
    from,
    more: last !== undefined && end < all.length ? { nextCursor: `${end}-${keyOf(last)}` } : {},
  };
}

function beginOf<T>(
  all: readonly T[],
  keyOf: (item: T) => Json | undefined,
  cursor: string | undefined,
): number {
  if (cursor === undefined) return 0;
  const [, end, last] = CURSOR.exec(cursor) ?? [];
  if (end === undefined) throw invalidParams("cursor is not one of this list");
  const at = Number(end) - 1;
  const isLast = (item: T) => keyOf(item) === last;
  // If that item was removed, the next one has moved to its position.
  if (all.slice(at, at + 1).some(isLast)) return at + 1;
  return all.findLastIndex(isLast) + 1 || Math.max(at, 0);
}
