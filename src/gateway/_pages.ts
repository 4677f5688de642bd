/**
 * Divides long lists into pages.
 *
 * @module
 */

import type { JsonObject } from "../core/json.ts";
import { invalid, optionalText } from "./_params.ts";

/** The most items of one page. */
const PAGE = 1_000;
const CURSOR = /^from-(\d{1,9})$/;

/**
 * Returns the page of a list that a request asks for, under the name of the list. Throws for a
 * cursor that PML did not give.
 */
export function pageOf(
  name: string,
  all: readonly JsonObject[],
  params: JsonObject,
): JsonObject {
  const cursor = optionalText(params, "cursor");
  const from = cursor === undefined ? 0 : Number(CURSOR.exec(cursor)?.[1] ?? NaN);
  if (Number.isNaN(from) || from > all.length) throw invalid("cursor is not one of this list");
  const next = from + PAGE;
  return {
    [name]: all.slice(from, next),
    ...next < all.length && { nextCursor: `from-${next}` },
  };
}
