/**
 * Answers `initialize` before the SDK is loaded, which takes most of the time of a start.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { isObject, type JsonObject, objectOf } from "../core/json.ts";

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

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

/** Gives what a client says that it can do: an older one with `initialize`, others with all they ask. */
export function ableIn(message: JSONRPCMessage): JsonObject | undefined {
  if (!("method" in message) || !isObject(message.params)) return undefined;
  const { capabilities, _meta } = message.params;
  const said = message.method === "initialize" ? capabilities : objectOf(_meta)[CAPABILITIES];
  return isObject(said) ? objectOf(said) : undefined;
}

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
