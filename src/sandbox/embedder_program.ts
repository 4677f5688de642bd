/**
 * The program of the child that embeds texts.
 *
 * @module
 */

// In one bundle with the other programs of children, this code compresses better.
export { embedderCode } from "./_boot_texts.ts";
