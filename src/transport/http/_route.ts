/**
 * Selects the part of PML that serves a request over HTTP: a session of an older revision, or the
 * stateless revision, whose headers repeat parts of the body.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../../core/json.ts";
import { ERROR, type ErrorObject } from "../../protocol/errors.ts";
import { isDefinedMethod, nameHeaderOf, STATELESS_REVISIONS } from "../../protocol/revisions.ts";
import { envelopeError, hasEnvelope, revisionError, revisionOf } from "../../protocol/envelope.ts";
import { isInitialize } from "../../protocol/initialize.ts";
import { classify, type RequestMessage } from "../../protocol/message.ts";
import { messageMembers } from "../../protocol/message_members.ts";

/** The part of PML that serves a request. */
export type Route =
  | { readonly kind: "session" }
  | {
    readonly kind: "notification";
    readonly method: string;
    readonly params: JsonObject;
    /** The members next to `method` and `params` that JSON-RPC does not define. */
    readonly members: JsonObject | undefined;
  }
  | RequestMessage
  /** A refused request. `id` is JSON. */
  | { readonly kind: "refused"; readonly id: string; readonly error: ErrorObject };

/** A request over HTTP. */
export interface HttpRequest {
  readonly method: string;
  /** The headers, by lower-case name, without the token. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The parsed body; undefined for all methods except POST. */
  readonly body: unknown;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
}

type RequestHeaders = HttpRequest["headers"];

const SESSION: Route = { kind: "session" };
const BASE64 = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;

/** Returns the part of PML that serves a request. */
export function selectRoute({ body, headers }: Pick<HttpRequest, "body" | "headers">): Route {
  if (body === undefined) return SESSION;
  if (Array.isArray(body)) return selectBatchRoute(body);
  const read = classify(body);
  if (read.kind === "refusal") {
    const error = { code: read.code, message: read.text };
    return { kind: "refused", id: JSON.stringify(read.id ?? null), error };
  }
  const { message } = read;
  if (message.method === undefined) return SESSION; // an answer
  const params = objectOf(message.params);
  const method = String(message.method);
  if (read.kind !== "request") {
    if (!hasEnvelope(params) && !isStateless(headers)) return SESSION;
    // A proxy between the client and PML may filter by headers, so the headers must match the body.
    const error = isDefinedMethod(method) || !hasEnvelope(params)
      ? undefined
      : findError(method, { params, headers });
    return error === undefined
      ? { kind: "notification", method, params, members: messageMembers(message) }
      : { kind: "refused", id: "null", error };
  }
  const error = hasEnvelope(params)
    ? findError(method, { params, headers })
    : isStateless(headers) && (isInitialize(message) ? NO_HANDSHAKE : MISSING_ENVELOPE);
  if (error === false) return SESSION;
  if (error !== undefined) return { kind: "refused", id: read.id, error };
  return read;
}

const MISSING_ENVELOPE: ErrorObject = {
  code: ERROR.invalidParams,
  message: "Invalid params: the header MCP-Protocol-Version names a revision whose requests each " +
    "have io.modelcontextprotocol/protocolVersion in _meta, and this one does not",
};

const NO_HANDSHAKE: ErrorObject = {
  code: ERROR.headerMismatch,
  message: "The header MCP-Protocol-Version names a revision that has no initialize",
};

/** Returns the route of a batch of messages. Only sessions accept batches. */
function selectBatchRoute(all: readonly unknown[]): Route {
  const isForSession = all.length > 0 && all.every((message) => {
    const read = classify(message);
    return read.kind !== "refusal" &&
      !hasEnvelope(objectOf(read.message.params));
  });
  if (isForSession) return SESSION;
  const why = "a batch may contain only messages of an older revision";
  const error = { code: ERROR.invalidRequest, message: `Invalid request: ${why}` };
  return { kind: "refused", id: "null", error };
}

function isStateless(headers: RequestHeaders): boolean {
  const [oldest = ""] = STATELESS_REVISIONS.toSorted();
  return (headers["mcp-protocol-version"] ?? "").trim() >= oldest;
}

/** Returns the error for an invalid request of the stateless revision. */
function findError(
  method: string,
  { params, headers }: { readonly params: JsonObject; readonly headers: RequestHeaders },
): ErrorObject | undefined {
  const invalid = envelopeError(params);
  if (invalid !== undefined) return invalid;
  const revision = String(revisionOf(params));
  const revisionHeader = headers["mcp-protocol-version"]?.trim();
  if (revisionHeader !== undefined && revisionHeader !== revision) {
    return mismatchError("MCP-Protocol-Version", revisionHeader, revision);
  }
  const error = revisionError(revision);
  if (error !== undefined) return error;
  if (revisionHeader === undefined) {
    return mismatchError("MCP-Protocol-Version", revisionHeader, revision);
  }
  const methodHeader = headers["mcp-method"]?.trim();
  if (methodHeader !== method) return mismatchError("Mcp-Method", methodHeader, method);
  const parameter = nameHeaderOf(method, params);
  if (typeof parameter !== "string") return undefined;
  const nameHeader = headers["mcp-name"]?.trim();
  return nameHeader !== undefined && decodeHeader(nameHeader) === parameter
    ? undefined
    : mismatchError("Mcp-Name", nameHeader, parameter);
}

/** Returns the decoded text of a header; undefined if its encoding is invalid. */
function decodeHeader(value: string): string | undefined {
  if (!value.startsWith("=?base64?") || !value.endsWith("?=")) return value;
  const [, encoded] = BASE64.exec(value) ?? [];
  if (encoded === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true })
      .decode(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

function mismatchError(header: string, value: string | undefined, expected: string): ErrorObject {
  const has = value === undefined ? "is missing" : `is ${JSON.stringify(value)}`;
  return {
    code: ERROR.headerMismatch,
    message: `The header ${header} ${has}, and the body has ${JSON.stringify(expected)}`,
    data: { mismatch: { header: value ?? "(missing)", body: expected } },
  };
}
