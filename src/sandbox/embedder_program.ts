/**
 * The program of the child that embeds texts.
 *
 * @module
 */

// What is packed beside the other programs of children takes less room.
export { embedderCode } from "./_boot_texts.ts";
