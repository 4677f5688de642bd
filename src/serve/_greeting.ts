/**
 * Answers `initialize` before the SDK is loaded, which takes most of the time of a start.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { isObject } from "../core/json.ts";

/** What is answered beside the revision. */
export type Greeting = object;

/** The revisions that begin with `initialize`, newest first; a test holds them to the SDK's. */
export const REVISIONS: readonly string[] = [
  "2025-11-25",
  "2025-06-18",
  "2025-03-26",
  "2024-11-05",
  "2024-10-07",
];

/**
 * Gives the result of an `initialize` request as the SDK will give it; undefined for anything that
 * is not plainly one, which the SDK then answers itself.
 */
export function greet(message: JSONRPCMessage, greeting: Greeting): object | undefined {
  if (!("method" in message) || message.method !== "initialize") return undefined;
  const { params } = message;
  if (!isObject(params) || "_meta" in params || !isObject(params.capabilities)) return undefined;
  const { protocolVersion, clientInfo } = params;
  if (typeof protocolVersion !== "string" || !isObject(clientInfo)) return undefined;
  if (typeof clientInfo.name !== "string" || typeof clientInfo.version !== "string") {
    return undefined;
  }
  const known = REVISIONS.includes(protocolVersion);
  return { protocolVersion: known ? protocolVersion : REVISIONS[0], ...greeting };
}
