/**
 * What the Worker in a sandbox child runs, before the module.
 *
 * @module
 */

import { bootWorker } from "./worker.ts";

bootWorker();
