/**
 * Runs before the code of a keeper whose program is confined.
 *
 * @module
 */

import type { Confining } from "./keeper.ts";
import { confineTo } from "./reach.ts";

(globalThis as Confining).confine = confineTo;
