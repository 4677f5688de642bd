/**
 * The style of this page and of its charts. `tools/assets.ts` puts the rules that this page shares
 * with the pages of a hub before this style.
 *
 * @module
 */

import chart from "uplot/dist/uPlot.min.css" with { type: "text" };
import own from "./style.css" with { type: "text" };

/** The rules in the order in which they apply. */
export const STYLE = `${chart}\n${own}`;
