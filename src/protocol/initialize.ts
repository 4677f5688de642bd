/**
 * Answers `initialize`.
 *
 * @module
 */

import { isObject, type JsonObject, objectOf } from "../core/json.ts";
import { HANDSHAKE_REVISION, HANDSHAKE_REVISIONS } from "./revisions.ts";
import { isClientInfo, META } from "./envelope.ts";

/**
 * Clients that need `prompts/list` within about 100 ms after `initialize`: they read the prompts once,
 * when the handshake ends, to offer them as commands.
 */
const EARLY_LISTERS = /^(gemini|qwen)-cli-mcp-client/;

/** The first message of a connection, and its answer if one was sent. */
export interface Handshake {
  readonly message: JsonObject;
  readonly result: JsonObject;
}

/** Returns whether a message is the request with which a client of an older revision begins. */
export function isInitialize({ method }: Readonly<Record<string, unknown>>): boolean {
  return method === "initialize";
}

/**
 * Returns the capabilities that a client declares: in `initialize`, or in each request of the
 * stateless revision.
 */
export function capabilitiesIn(message: JsonObject): JsonObject | undefined {
  return findDeclared(message, "capabilities", META.capabilities);
}

/**
 * Returns the name and the version that a client declares: in `initialize`, or in each request of
 * the stateless revision.
 */
export function clientInfoIn(message: JsonObject): JsonObject | undefined {
  return findDeclared(message, "clientInfo", META.client);
}

function findDeclared(message: JsonObject, name: string, key: string): JsonObject | undefined {
  if (!isObject(message.params)) return undefined;
  const params = objectOf(message.params);
  const declared = isInitialize(message) ? params[name] : objectOf(params._meta)[key];
  return isObject(declared) ? objectOf(declared) : undefined;
}

/** Returns whether `initialize` comes from a client that needs the lists right after it. */
export function needsEarlyLists(message: JsonObject): boolean {
  const { name } = objectOf(objectOf(message.params).clientInfo);
  return typeof name === "string" && EARLY_LISTERS.test(name);
}

/** Returns the result of an `initialize` request; undefined if its params are not valid. */
export function initializeResult(message: JsonObject, greeting: object): JsonObject | undefined {
  if (!isInitialize(message)) return undefined;
  const { protocolVersion, clientInfo, capabilities } = objectOf(message.params);
  if (typeof protocolVersion !== "string" || !isObject(capabilities)) return undefined;
  if (!isClientInfo(clientInfo)) return undefined;
  return {
    protocolVersion: HANDSHAKE_REVISIONS.includes(protocolVersion)
      ? protocolVersion
      : HANDSHAKE_REVISION,
    ...greeting,
  };
}
