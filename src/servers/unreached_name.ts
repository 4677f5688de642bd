/**
 * The error if no registry can be reached to look up a name.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";

/** The error if no registry can be reached to look up a name. */
export class UnreachedName extends PmlError {}
