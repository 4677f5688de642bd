/**
 * The handshake with a server: in the newest revision of MCP, or in the one before it.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { type JsonObject, objectOf } from "../core/json.ts";
import { CLIENT } from "./_meta.ts";
import type { NewestRequests } from "./_newest.ts";
import { ErrorResponse, type Peer, type RequestOptions } from "./_peer.ts";
import { isNewer, knowsNewest, LEGACY, mayBeOlder, MODERN, NO_SUCH_METHOD } from "./_revisions.ts";
import type { Wire } from "./wire.ts";

/** The options of `shakeHands`. */
export interface Handshake {
  readonly wire: Wire;
  readonly peer: Peer;
  readonly newest: NewestRequests;
  /** Returns the client capabilities that the server gets. */
  readonly capabilities: () => JsonObject;
  /** Makes the error for a server that breaks the protocol. */
  readonly broken: (why: string) => Error;
  readonly signal: AbortSignal;
}

/** The result of a handshake. */
export interface Agreement {
  /** Whether the connection uses the newest revision. */
  readonly isModern: boolean;
  /** The capabilities of the server. */
  readonly capabilities: JsonObject;
}

/** Makes the handshake with a server, in a revision that it supports. */
export async function shakeHands(options: Handshake): Promise<Agreement> {
  const { wire: { newestFirst }, signal } = options;
  // Aborting a handshake ends the connection, so no ping is needed after it.
  const aside = { signal, lasts: true };
  const start = (isModern = false) => (isModern ? discover : initialize)(options, aside);
  try {
    return await start(newestFirst).catch((error) => {
      if (!(newestFirst ? mayBeOlder(error) : isNewer(error))) throw error;
      return start(!newestFirst || knowsNewest(error));
    });
  } catch (error) {
    throw failureOf(error, options);
  }
}

async function initialize(
  { peer, wire, capabilities }: Handshake,
  aside: RequestOptions,
): Promise<Agreement> {
  const result = await peer.request("initialize", {
    protocolVersion: LEGACY,
    capabilities: { roots: {}, ...capabilities() },
    clientInfo: CLIENT,
  }, aside);
  wire.send({ method: "notifications/initialized" });
  return { isModern: false, capabilities: objectOf(objectOf(result).capabilities) };
}

async function discover({ newest }: Handshake, aside: RequestOptions): Promise<Agreement> {
  const result = objectOf(await newest.request("server/discover", {}, aside));
  const { supportedVersions, capabilities } = result;
  // An older server may answer an unknown method with any result.
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MODERN)) {
    throw new ErrorResponse(NO_SUCH_METHOD, `it does not support ${MODERN}`);
  }
  return { isModern: true, capabilities: objectOf(capabilities) };
}

/** Returns the error that best explains why the handshake failed. */
function failureOf(error: unknown, { wire, broken }: Handshake): unknown {
  const own = error instanceof ErrorResponse
    ? broken(`it refused the handshake: ${error.message}`)
    : error;
  return mayBeOlder(error) && own instanceof PmlError ? wire.explain?.(own) ?? own : own;
}
