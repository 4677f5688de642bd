/**
 * What runs before a keeper and before the program below it.
 *
 * @module
 */

import { boot } from "./keeper.ts";

boot();
