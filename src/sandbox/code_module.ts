/**
 * The module that a child loads to run code, when the first code runs.
 *
 * @module
 */

import { codeCode } from "./_boot_texts.ts";

export type { CodeEnd, CodeStart } from "./boot/code.ts";

/** The module's bytes. */
export const CODE_MODULE: Uint8Array = new TextEncoder().encode(codeCode);
