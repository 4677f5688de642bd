/**
 * The entry of the step before a keeper, and of the step before the program below it.
 *
 * @module
 */

import { boot } from "./keeper.ts";

boot();
