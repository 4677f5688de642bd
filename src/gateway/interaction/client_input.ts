/**
 * The functions by which calls get input from a client.
 *
 * @module
 */

import type { CallClient } from "../../protocol/call.ts";

/** The functions by which calls get input from a client: for servers, and for PML. */
export type ClientInput = Required<Pick<CallClient, "onAsk" | "onQuestion">>;
