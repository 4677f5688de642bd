/**
 * Runs before a confined program, below its keeper.
 *
 * @module
 */

import { boot } from "./keeper.ts";
import { confineTo } from "./reach.ts";

boot(confineTo);
