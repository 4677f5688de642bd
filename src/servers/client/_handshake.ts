/**
 * The handshake with a server: in the stateless revision of MCP, or in the one before it.
 *
 * @module
 */

import { Cancellation } from "../../core/cancellation.ts";
import { asPmlError, PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf, textOf } from "../../core/json.ts";
import { isUnsent } from "../../io/outages.ts";
import { after, soon } from "../../io/waiting.ts";
import { ERROR, RpcError } from "../../protocol/errors.ts";
import { HANDSHAKE_REVISION, STATELESS_REVISION } from "../../protocol/revisions.ts";
import { clientInfoFor } from "./_meta.ts";
import type { StatelessConnection, StatelessRequests } from "./_stateless.ts";
import { type RequestOptions, type RpcPeer, withoutClient } from "../../protocol/rpc_peer.ts";
import type { IncomingRequests } from "./_incoming_requests.ts";
import type { Wire } from "./wire.ts";

/** The options of `shakeHands`. */
export interface Handshake {
  readonly connection: StatelessConnection;
  readonly wire: Wire;
  readonly peer: RpcPeer;
  readonly incoming: IncomingRequests;
  readonly stateless: StatelessRequests;
  readonly signal: AbortSignal;
  /** Whether only the older revisions are tried. */
  readonly isSession?: boolean | undefined;
}

/** The maximum time for the requests that a server makes after the handshake, in milliseconds. */
const SETTLE_MS = 500;

/** The result of a handshake. */
export interface Agreement {
  /** Whether the connection uses the stateless revision. */
  readonly isStateless: boolean;
  /** The capabilities of the server. */
  readonly capabilities: JsonObject;
  /** How to use the server, for models; "" if it has no instructions. */
  readonly instructions: string;
}

/** Completes the handshake with a server, in a revision that it supports. */
export async function shakeHands(options: Handshake): Promise<Agreement> {
  const { wire: { revisions }, signal, isSession } = options;
  // Aborting a handshake ends the connection, so no ping is needed after it.
  using cancellation = Cancellation.of(signal);
  const aside = { ...withoutClient(cancellation), lasts: true };
  try {
    if (isSession) return await startSession(options, aside);
    const agreed = revisions?.discoverMs === undefined
      ? await initializeFirst(options, aside)
      : await discoverFirst(options, { aside, ms: revisions.discoverMs });
    if (revisions?.isUnknown) void findStateless(options, agreed);
    return agreed;
  } catch (error) {
    revisions?.forget?.();
    throw failureOf(error, options);
  }
}

/** Tries `initialize`, then the stateless revision. */
async function initializeFirst(options: Handshake, aside: RequestOptions): Promise<Agreement> {
  return await initialize(options, aside).catch((error) => {
    if (!isNewer(error)) throw error;
    return discover(options, aside);
  });
}

/**
 * Remembers whether a server supports the stateless revision. One that took `initialize` is asked
 * once: it counts as older until it has answered, because it may end at an unknown method.
 */
async function findStateless(options: Handshake, { isStateless }: Agreement): Promise<void> {
  const { revisions } = options.wire;
  if (!isStateless) revisions?.foundOlder({ isSilent: false });
  const has = isStateless || await discover(options, { ...withoutClient(), lasts: true })
    .then(() => true, supportsStateless);
  if (has) revisions?.foundStateless?.();
}

/** Opens a session of an older revision. Without a session, a server cannot ask during a call. */
async function startSession(options: Handshake, aside: RequestOptions): Promise<Agreement> {
  const agreed = await initialize(options, aside);
  if (options.wire.hasSession !== true) {
    throw options.connection.protocolError("it opened no session");
  }
  return agreed;
}

/** Tries the stateless revision for a limited time, then `initialize`. */
async function discoverFirst(
  options: Handshake,
  { aside, ms }: { readonly aside: RequestOptions; readonly ms: number },
): Promise<Agreement> {
  const silent = new AbortController();
  let first: unknown;
  {
    using cancellation = Cancellation.of(
      AbortSignal.any([aside.cancellation.signal, silent.signal]),
    );
    using _ = after(ms, () => silent.abort(new Error("no answer to server/discover")));
    const agreed = await discover(options, { ...aside, cancellation }).catch((error) => {
      first = error;
    });
    if (agreed !== undefined) return agreed;
  }
  aside.cancellation.throwIfCancelled();
  const isSilent = silent.signal.aborted;
  if (supportsStateless(first)) return await discover(options, aside);
  if (!isSilent && !mayTakeInitialize(first)) throw first;
  try {
    const agreed = await initialize(options, aside);
    options.wire.revisions?.foundOlder({ isSilent });
    return agreed;
  } catch (error) {
    // A server of the stateless revision that was slow to start.
    if (isNewer(error)) return await discover(options, aside);
    // The refusal of the first try can name a better reason than a connection that broke again.
    throw isSilent || mayBeOlder(error) ? error : first;
  }
}

/** Returns whether a server that failed `server/discover` like this may take `initialize`. */
function mayTakeInitialize(error: unknown): boolean {
  if (mayBeOlder(error)) return true;
  return ["UPSTREAM_DOWN", "UPSTREAM_PROTOCOL"].includes(asPmlError(error).code) &&
    !isUnsent(error);
}

async function initialize(
  { peer, incoming, wire, connection }: Handshake,
  aside: RequestOptions,
): Promise<Agreement> {
  const result = await peer.request("initialize", {
    protocolVersion: HANDSHAKE_REVISION,
    capabilities: { roots: { listChanged: true }, ...connection.capabilitiesFor() },
    clientInfo: clientInfoFor(connection.clientInfo()),
  }, aside);
  wire.send({ method: "notifications/initialized" });
  await settled(peer, incoming);
  return { isStateless: false, ...saidBy(objectOf(result)) };
}

/**
 * Waits for the requests that a server makes once the handshake is over. A server that asks for the
 * roots may refuse all paths until it has the answer. A ping is answered after earlier messages.
 */
async function settled(peer: RpcPeer, incoming: IncomingRequests): Promise<void> {
  const since = performance.now();
  // A server that does not answer the ping may answer calls, so this is not cancelled.
  const aside = { ...withoutClient(), lasts: true };
  for (let count = -1; count !== incoming.count;) {
    const leftMs = SETTLE_MS - (performance.now() - since);
    if (leftMs <= 0) return;
    count = incoming.count;
    const pinged = peer.request("ping", {}, aside).catch(() => {});
    if (!await soon(pinged.then(() => incoming.answered()), leftMs)) return;
  }
}

async function discover({ stateless }: Handshake, aside: RequestOptions): Promise<Agreement> {
  const result = objectOf(await stateless.request("server/discover", {}, aside));
  const { supportedVersions } = result;
  // An older server may answer an unknown method with any result.
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(STATELESS_REVISION)) {
    throw new RpcError(ERROR.methodNotFound, `it does not support ${STATELESS_REVISION}`);
  }
  return { isStateless: true, ...saidBy(result) };
}

function saidBy({ capabilities, instructions }: JsonObject): Omit<Agreement, "isStateless"> {
  return { capabilities: objectOf(capabilities), instructions: textOf(instructions) };
}

/** Returns whether an error to `initialize` means that the server supports the stateless revision. */
function isNewer(error: unknown): boolean {
  const codes: readonly number[] = [ERROR.unsupportedProtocolVersion, ERROR.methodNotFound];
  return error instanceof RpcError && codes.includes(error.code);
}

/** Returns whether an error to the stateless revision still lists that revision as supported. */
function supportsStateless(error: unknown): boolean {
  if (!(error instanceof RpcError) || error.code !== ERROR.unsupportedProtocolVersion) return false;
  const { supported } = objectOf(error.data);
  return Array.isArray(supported) && supported.includes(STATELESS_REVISION);
}

/** Returns whether an error may mean that the server only supports an older revision. */
function mayBeOlder(error: unknown): boolean {
  return error instanceof RpcError ||
    error instanceof PmlError && error.detail?.status !== undefined &&
      error.code !== "LOGIN_REQUIRED";
}

/** Returns the error that best explains why the handshake failed. */
function failureOf(error: unknown, { wire, connection, isSession }: Handshake): unknown {
  const own = error instanceof RpcError
    ? connection.protocolError(`it refused the handshake: ${error.message}`)
    : error;
  // The transport is the right one: the server has answered on it in the stateless revision.
  if (isSession) return own;
  return mayBeOlder(error) && own instanceof PmlError ? wire.explain?.(own) ?? own : own;
}
