/**
 * The version of this package, as clients and people are told it.
 *
 * @module
 */

/** The version in `deno.json`; a test keeps the two the same. */
export const VERSION = "0.1.0";
