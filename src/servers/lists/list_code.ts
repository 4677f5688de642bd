/**
 * Importing this file loads code that is otherwise loaded when the first list arrives. For a caller
 * that will need a list soon.
 *
 * @module
 */

import "./_safe_schema.ts";
