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

/** How many pages are remembered. */
const MOST_PAGES = 64;

/** What a list is shown as. */
export interface ShownList {
  readonly name: string;
  readonly items: readonly JsonObject[];
  /** What each of its pages says beside the items. */
  readonly about: JsonObject;
}

/**
 * Divides lists into pages. A page is the same object as long as its items are the same objects:
 * then it need not be written and counted again, which takes most of the time of a long list.
 */
export class Pages {
  readonly #known = new Map<string, { readonly items: readonly JsonObject[]; page: JsonObject }>();

  /**
   * Returns the page that a request asks for, under the name of the list. Throws for a cursor that
   * PML did not give.
   */
  of({ name, items: all, about }: ShownList, params: JsonObject): JsonObject {
    const cursor = optionalText(params, "cursor");
    const from = cursor === undefined ? 0 : Number(CURSOR.exec(cursor)?.[1] ?? NaN);
    if (Number.isNaN(from) || from > all.length) throw invalid("cursor is not one of this list");
    const next = from + PAGE;
    const items = all.slice(from, next);
    const more = next < all.length && { nextCursor: `from-${next}` };
    const key = JSON.stringify([name, from, about, more]);
    const known = this.#known.get(key);
    const isSame = known?.items.length === items.length &&
      items.every((item, at) => item === known.items[at]);
    if (known !== undefined && isSame) return known.page;
    if (this.#known.size >= MOST_PAGES) this.#known.clear();
    const page = { [name]: items, ...more, ...about };
    this.#known.set(key, { items, page });
    return page;
  }
}
