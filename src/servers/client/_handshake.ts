/**
 * The handshake with a server: in the stateless revision of MCP (`server/discover`), or in an older
 * one (`initialize`).
 *
 * @module
 */

import { Cancellation } from "../../core/cancellation.ts";
import { asPmlError, PmlError } from "../../core/errors.ts";
import { type JsonObject, objectOf, textOf } from "../../core/json.ts";
import { isUnsent } from "../../io/outages.ts";
import { callAfter, settlesWithin } from "../../io/waiting.ts";
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
  /** Whether to open a session, so that only the older revisions are tried. */
  readonly isSession?: boolean | undefined;
}

/**
 * How long to wait at most for requests that a server sends after the handshake, in milliseconds.
 */
const SETTLE_MS = 500;

/** The result of a handshake. */
export interface Agreement {
  /** Whether the connection uses the stateless revision. */
  readonly isStateless: boolean;
  /** The capabilities of the server. */
  readonly capabilities: JsonObject;
  /** How to use the server, for models; "" if it has no instructions. */
  readonly instructions: string;
  /** The revision of MCP that was agreed on. */
  readonly revision?: string | undefined;
}

/** Completes the handshake with a server in a revision that it supports. */
export async function shakeHands(options: Handshake): Promise<Agreement> {
  const { wire: { revisions }, signal, isSession } = options;
  // Aborting a handshake ends the connection, so no ping is needed after it.
  using cancellation = Cancellation.of(signal);
  const requestOptions = { ...withoutClient(cancellation), isLongLived: true };
  try {
    if (isSession) return await startSession(options, requestOptions);
    const agreed = revisions?.discoverMs === undefined
      ? await initializeFirst(options, requestOptions)
      : await discoverFirst(options, { requestOptions, ms: revisions.discoverMs });
    if (revisions?.isUnknown) void findStateless(options, agreed);
    return agreed;
  } catch (error) {
    revisions?.forget?.();
    throw failureOf(error, options);
  }
}

/** Tries `initialize`, and then the stateless revision if the error allows that. */
async function initializeFirst(
  options: Handshake,
  requestOptions: RequestOptions,
): Promise<Agreement> {
  return await initialize(options, requestOptions).catch((error) => {
    if (!mayBeStatelessOnly(error)) throw error;
    return discover(options, requestOptions);
  });
}

/**
 * Finds out and remembers whether a server supports the stateless revision. Asks a server that
 * accepted `initialize` with `server/discover`. Before that, stores "not supported", because the
 * unknown method may end the process of the server.
 */
async function findStateless(options: Handshake, { isStateless }: Agreement): Promise<void> {
  const { revisions } = options.wire;
  if (!isStateless) revisions?.foundOlder({ isSilent: false });
  const isSupported = isStateless ||
    await discover(options, { ...withoutClient(), isLongLived: true })
      .then(() => true, supportsStateless);
  if (isSupported) revisions?.foundStateless?.();
}

/**
 * Opens a session of an older revision. Throws if the server opened none, because without a session
 * it could not send requests to the client during a call.
 */
async function startSession(
  options: Handshake,
  requestOptions: RequestOptions,
): Promise<Agreement> {
  const agreed = await initialize(options, requestOptions);
  if (options.wire.hasSession !== true) {
    throw options.connection.protocolError("it opened no session");
  }
  return agreed;
}

/**
 * Tries the stateless revision for `ms` milliseconds, and then `initialize` if the error allows
 * that.
 */
async function discoverFirst(
  options: Handshake,
  { requestOptions, ms }: { readonly requestOptions: RequestOptions; readonly ms: number },
): Promise<Agreement> {
  const timeout = new AbortController();
  let firstError: unknown;
  {
    using cancellation = Cancellation.of(
      AbortSignal.any([requestOptions.cancellation.signal, timeout.signal]),
    );
    using _ = callAfter(ms, () => timeout.abort(new Error("no answer to server/discover")));
    const agreed = await discover(options, { ...requestOptions, cancellation }).catch((error) => {
      firstError = error;
    });
    if (agreed !== undefined) return agreed;
  }
  requestOptions.cancellation.throwIfCancelled();
  const isSilent = timeout.signal.aborted;
  if (supportsStateless(firstError)) return await discover(options, requestOptions);
  if (!isSilent && !mayTakeInitialize(firstError)) throw firstError;
  try {
    const agreed = await initialize(options, requestOptions);
    options.wire.revisions?.foundOlder({ isSilent });
    return agreed;
  } catch (error) {
    // The server supports the stateless revision, but was slow to start.
    if (mayBeStatelessOnly(error)) return await discover(options, requestOptions);
    // If the connection also failed at the second try, the first error may contain a better reason.
    throw isSilent || mayBeOlder(error) ? error : firstError;
  }
}

/** Returns whether `initialize` may work after `server/discover` failed with this error. */
function mayTakeInitialize(error: unknown): boolean {
  if (mayBeOlder(error)) return true;
  return ["UPSTREAM_DOWN", "UPSTREAM_PROTOCOL"].includes(asPmlError(error).code) &&
    !isUnsent(error);
}

async function initialize(
  { peer, incoming, wire, connection }: Handshake,
  requestOptions: RequestOptions,
): Promise<Agreement> {
  const result = await peer.request("initialize", {
    protocolVersion: HANDSHAKE_REVISION,
    capabilities: { roots: { listChanged: true }, ...connection.capabilitiesFor() },
    clientInfo: clientInfoFor(connection.clientInfo()),
  }, requestOptions);
  wire.send({ method: "notifications/initialized" });
  await waitForServerRequests(peer, incoming);
  const { protocolVersion } = objectOf(result);
  return {
    isStateless: false,
    ...serverFacts(objectOf(result)),
    revision: textOf(protocolVersion),
  };
}

/**
 * Waits until the requests that a server sends right after the handshake are answered. A server
 * that requests the roots may refuse all paths until it has them. The answer to a ping shows that
 * the server has sent all earlier messages.
 */
async function waitForServerRequests(peer: RpcPeer, incoming: IncomingRequests): Promise<void> {
  const since = performance.now();
  // A server that does not answer the ping may still answer calls, so the ping is not cancelled.
  const requestOptions = { ...withoutClient(), isLongLived: true };
  for (let count = -1; count !== incoming.count;) {
    const leftMs = SETTLE_MS - (performance.now() - since);
    if (leftMs <= 0) return;
    count = incoming.count;
    const pinged = peer.request("ping", {}, requestOptions).catch(() => {});
    if (!await settlesWithin(pinged.then(() => incoming.waitForAnswers()), leftMs)) return;
  }
}

async function discover(
  { stateless }: Handshake,
  requestOptions: RequestOptions,
): Promise<Agreement> {
  const result = objectOf(await stateless.request("server/discover", {}, requestOptions));
  const { supportedVersions } = result;
  // An older server may answer an unknown method with any result.
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(STATELESS_REVISION)) {
    throw new RpcError(ERROR.methodNotFound, `it does not support ${STATELESS_REVISION}`);
  }
  return { isStateless: true, ...serverFacts(result), revision: STATELESS_REVISION };
}

function serverFacts({ capabilities, instructions }: JsonObject): Omit<Agreement, "isStateless"> {
  return { capabilities: objectOf(capabilities), instructions: textOf(instructions) };
}

/**
 * Returns whether an error of `initialize` can mean that the server supports only newer revisions.
 */
function mayBeStatelessOnly(error: unknown): boolean {
  const codes: readonly number[] = [ERROR.unsupportedProtocolVersion, ERROR.methodNotFound];
  return error instanceof RpcError && codes.includes(error.code);
}

/**
 * Returns whether an error of `server/discover` lists the stateless revision as supported. Some
 * servers reject the revision of this request nevertheless.
 */
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
  // The server supports the stateless revision on this transport, so no other transport is tried.
  if (isSession) return own;
  return mayBeOlder(error) && own instanceof PmlError ? wire.explain?.(own) ?? own : own;
}
