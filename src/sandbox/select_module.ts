/**
 * The module that a child loads to select parts of results.
 *
 * @module
 */

import { selectCode } from "./_boot_texts.ts";

export type { Selected, Selecting } from "./boot/select.ts";

/** The module's code. */
export const SELECT_CODE: string = selectCode;
