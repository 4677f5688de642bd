/**
 * The entry of a sandbox child: the host thread.
 *
 * @module
 */

import { boot } from "./host.ts";

void boot();
