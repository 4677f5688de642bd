/**
 * The module that a child loads to check values against schemas from servers and registries.
 *
 * @module
 */

import { schemasCode } from "./_boot_texts.ts";

export type { SchemaAnswer, SchemaCheck } from "./boot/schemas.ts";

/** The module's code. */
export const SCHEMA_CODE: string = schemasCode;
