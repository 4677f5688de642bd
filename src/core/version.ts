/**
 * The version of this package, as clients and users see it.
 *
 * @module
 */

/** The version in `deno.json`. A test compares the two. */
export const VERSION = "0.1.0";
