/**
 * The error for a name that no registry could be asked about.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";

/** No registry could be asked whether it has a server of this name. */
export class UnreachedName extends PmlError {}
