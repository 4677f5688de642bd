/**
 * The entry of the Worker in a sandbox child; it runs before the module.
 *
 * @module
 */

import { bootWorker } from "./worker.ts";

bootWorker();
