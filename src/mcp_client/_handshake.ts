/**
 * The handshake with a server: in the newest revision of MCP, or in the one before it.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../core/json.ts";
import { CLIENT } from "./_meta.ts";
import type { NewestRequests } from "./_newest.ts";
import { Answered, type Peer, type RequestOptions } from "./_peer.ts";
import { isNewer, knowsNewest, LEGACY, mayBeOlder, MODERN, NO_SUCH_METHOD } from "./_revisions.ts";
import type { Wire } from "./wire.ts";

/** What a handshake needs. */
export interface Handshake {
  readonly wire: Wire;
  readonly peer: Peer;
  readonly newest: NewestRequests;
  /** What the client can do for a server. */
  readonly able: () => JsonObject;
  /** Makes the error of a server that does not answer as it should. */
  readonly broken: (why: string) => Error;
  readonly signal: AbortSignal;
}

/** What a connection and its server agreed on. */
export interface Agreement {
  /** Whether they speak the newest revision. */
  readonly isModern: boolean;
  /** What the server can do. */
  readonly capabilities: JsonObject;
}

/** Shakes hands with a server, in the revision that it wants. */
export async function shakeHands(options: Handshake): Promise<Agreement> {
  const { wire: { newestFirst }, signal } = options;
  // One that is given up ends the connection: then nobody is asked whether it is there.
  const aside = { signal, lasts: true };
  const greet = (isModern = false) => (isModern ? discover : initialize)(options, aside);
  try {
    return await greet(newestFirst).catch((error) => {
      if (!(newestFirst ? mayBeOlder(error) : isNewer(error))) throw error;
      return greet(!newestFirst || knowsNewest(error));
    });
  } catch (error) {
    throw await refused(error, options);
  }
}

async function initialize(
  { peer, wire, able }: Handshake,
  aside: RequestOptions,
): Promise<Agreement> {
  const said = await peer.request("initialize", {
    protocolVersion: LEGACY,
    capabilities: { roots: {}, ...able() },
    clientInfo: CLIENT,
  }, aside);
  wire.send({ method: "notifications/initialized" });
  return { isModern: false, capabilities: objectOf(objectOf(said).capabilities) };
}

async function discover({ newest }: Handshake, aside: RequestOptions): Promise<Agreement> {
  const said = objectOf(await newest.request("server/discover", {}, aside));
  const { supportedVersions, capabilities } = said;
  // An older server may answer anything to what it does not know.
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MODERN)) {
    throw new Answered(NO_SUCH_METHOD, `it does not speak ${MODERN}`);
  }
  return { isModern: true, capabilities: objectOf(capabilities) };
}

/** Finds the best word for why there is no handshake. */
async function refused(error: unknown, { wire, broken, signal }: Handshake): Promise<unknown> {
  const better = mayBeOlder(error) ? await wire.explain?.(signal) : undefined;
  if (better !== undefined || !(error instanceof Answered)) return better ?? error;
  return broken(`it refused the handshake: ${error.message}`);
}
