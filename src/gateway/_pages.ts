/**
 * Divides long lists into pages.
 *
 * @module
 */

import type { Json, JsonObject } from "../core/json.ts";
import { invalidParams, optionalText } from "./_params.ts";

/** The maximum number of items of one page. */
const PAGE_ITEMS = 1_000;
/** Matches a cursor: the number of items before the next page, and the key of the last of them. */
const CURSOR = /^(\d{1,9})-(.*)$/s;

/** One page of a list. */
export interface ListPage<T> {
  readonly items: readonly T[];
  /** The number of items before this page. */
  readonly from: number;
  /** The member `nextCursor`, if there is another page. */
  readonly cursorMember: { readonly nextCursor?: string };
}

/**
 * Returns the page of a list that a request asks for. If the list has changed since the previous
 * page, this page begins after the current position of the previous page's last item. Throws
 * `BAD_REQUEST` for a cursor that PML did not create.
 */
export function takePage<T>(
  all: readonly T[],
  params: JsonObject,
  keyOf: (item: T) => Json | undefined,
): ListPage<T> {
  const from = findBegin(all, keyOf, optionalText(params, "cursor"));
  const items = all.slice(from, from + PAGE_ITEMS);
  const end = from + items.length;
  const last = items.at(-1);
  return {
    items,
    from,
    cursorMember: last !== undefined && end < all.length
      ? { nextCursor: `${end}-${keyOf(last)}` }
      : {},
  };
}

function findBegin<T>(
  all: readonly T[],
  keyOf: (item: T) => Json | undefined,
  cursor: string | undefined,
): number {
  if (cursor === undefined) return 0;
  const [, end, last] = CURSOR.exec(cursor) ?? [];
  if (end === undefined) throw invalidParams("cursor is not one of this list");
  const lastIndex = Number(end) - 1;
  const isLast = (item: T) => keyOf(item) === last;
  // If the last item was removed, the next item has moved to its position.
  if (all.slice(lastIndex, lastIndex + 1).some(isLast)) return lastIndex + 1;
  return all.findLastIndex(isLast) + 1 || Math.max(lastIndex, 0);
}
