/**
 * The module that a child loads to run code. It is loaded by the first code.
 *
 * @module
 */

import code from "./boot/code.min.js" with { type: "text" };

export type { CodeEnd, CodeStart } from "./boot/code.ts";

/** The module's bytes. */
export const CODE_MODULE: Uint8Array = new TextEncoder().encode(code);
