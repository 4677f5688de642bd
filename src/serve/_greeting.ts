/**
 * Answers `initialize` without the SDK, because loading it takes most of the start.
 *
 * @module
 */

import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { isObject, type JsonObject, objectOf } from "../core/json.ts";

/**
 * The revisions that begin with `initialize`, newest first. A test compares them with the SDK's.
 */
export const REVISIONS: readonly string[] = [
  "2025-11-25",
  "2025-06-18",
  "2025-03-26",
  "2024-11-05",
  "2024-10-07",
];

/**
 * Clients that show prompts only if `prompts/list` is answered within some 100 ms after `initialize`:
 * they read their list of commands when the handshake ends, and not again.
 */
const HURRIED = /^(gemini|qwen)-cli-mcp-client/;

const CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

/** The first message of a connection, and its answer, if it is answered already. */
export interface Greeted {
  readonly message: JSONRPCMessage;
  readonly result: JsonObject;
}

/**
 * Returns the capabilities that a client declares: in `initialize`, or in each request of the
 * newest revision.
 */
export function capabilitiesIn(message: JSONRPCMessage): JsonObject | undefined {
  if (!("method" in message) || !isObject(message.params)) return undefined;
  const { capabilities, _meta } = message.params;
  const declared = message.method === "initialize" ? capabilities : objectOf(_meta)[CAPABILITIES];
  return isObject(declared) ? objectOf(declared) : undefined;
}

/** Returns whether `initialize` comes from a client that needs the answers of lists right after it. */
export function isHurried(message: JSONRPCMessage): boolean {
  if (!("method" in message)) return false;
  const { name } = objectOf(objectOf(message.params).clientInfo);
  return typeof name === "string" && HURRIED.test(name);
}

/**
 * Returns the result of an `initialize` request, equal to the SDK's. Returns undefined if the
 * request is not plainly valid; then the SDK answers.
 */
export function greet(message: JSONRPCMessage, greeting: object): JsonObject | undefined {
  if (!("method" in message) || message.method !== "initialize") return undefined;
  const { params } = message;
  if (!isObject(params) || "_meta" in params || !isObject(params.capabilities)) return undefined;
  const { protocolVersion, clientInfo } = params;
  if (typeof protocolVersion !== "string" || !isObject(clientInfo)) return undefined;
  if (typeof clientInfo.name !== "string" || typeof clientInfo.version !== "string") {
    return undefined;
  }
  const [newest = ""] = REVISIONS;
  return {
    protocolVersion: REVISIONS.includes(protocolVersion) ? protocolVersion : newest,
    ...greeting,
  };
}
