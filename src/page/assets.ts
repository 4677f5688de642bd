/**
 * The files of the page. None contains a secret.
 *
 * @module
 */

import html from "./page.html" with { type: "text" };
import script from "./page.min.js" with { type: "text" };
import style from "./page.min.css" with { type: "text" };

/** A file that the page's browser loads. */
export interface PageAsset {
  readonly type: string;
  readonly text: string;
}

/** The files of the page, by their paths. */
export const PAGE_ASSETS: ReadonlyMap<string, PageAsset> = new Map([
  ["/", { type: "text/html; charset=utf-8", text: html }],
  ["/page.js", { type: "text/javascript; charset=utf-8", text: script }],
  ["/page.css", { type: "text/css; charset=utf-8", text: style }],
]);
