/**
 * What a sandbox child runs: the host thread.
 *
 * @module
 */

import { boot } from "./host.ts";

await boot();
