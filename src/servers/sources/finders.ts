/**
 * Importing this file loads finders that are otherwise loaded when they are first used. For a
 * caller that will soon open servers of files.
 *
 * @module
 */

import "./_file_finder.ts";
import "./_hub_finder.ts";
