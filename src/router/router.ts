/**
 * Sends each call to where its server runs: this machine, or the cloud.
 *
 * @module
 */

import type { CallTool } from "../core/call.ts";
import { splitToolId } from "../core/tool_id.ts";

/** Where a server runs: here, or behind PML's cloud. */
export type Route = "local" | "cloud";

/** What a router needs. */
export interface RouterOptions extends Readonly<Record<Route, CallTool>> {
  /** Tells where a server runs; what the person defined and built-ins are local by their origin, not by their name. */
  readonly routingOf: (server: string) => Route;
}

/** Passes calls on. */
export interface Router {
  readonly call: CallTool;
}

/** Makes a router that asks once a call where its server runs. */
export function makeRouter(options: RouterOptions): Router {
  return { call: (call) => options[options.routingOf(splitToolId(call.id).server)](call) };
}
