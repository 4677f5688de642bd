/**
 * The type of the checks that a call passes before it runs.
 *
 * @module
 */

import type { Outcome } from "../../protocol/call.ts";
import type { Maybe } from "../../core/maybe.ts";
import type { CallContext } from "../context.ts";

/**
 * Undefined: the call passes. `restart`: the configuration changed, so the server is resolved again
 * and all checks start over. An outcome, such as a question to the user, ends the call.
 */
export type CheckResult = undefined | "restart" | Outcome;

/**
 * Checks a call before it runs. Throws if the call is refused. Returns a promise only if it has to
 * wait for something.
 */
export type Check = (call: CallContext) => Maybe<CheckResult>;
