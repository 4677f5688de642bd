/**
 * Stands before the code of a keeper where the program below it is confined.
 *
 * @module
 */

import type { Confining } from "./keeper.ts";
import { confineTo } from "./reach.ts";

(globalThis as Confining).confine = confineTo;
