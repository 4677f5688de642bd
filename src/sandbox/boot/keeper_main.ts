/**
 * The entry of the processes that a keeper and its program replace.
 *
 * @module
 */

import { boot } from "./keeper.ts";

boot();
