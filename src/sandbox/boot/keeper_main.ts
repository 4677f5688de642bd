/**
 * The entry of the processes that a keeper and its program replace.
 *
 * @module
 */

import { runSupervised } from "./keeper.ts";

runSupervised();
