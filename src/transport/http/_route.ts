/**
 * Selects the part of PML that serves a request over HTTP: a session of an older revision, or the
 * stateless revision, whose headers repeat parts of the body.
 *
 * @module
 */

import { type JsonObject, objectOf } from "../../core/json.ts";
import { ERROR, type ErrorObject } from "../../protocol/errors.ts";
import { isDefined, namedBy, STATELESS_REVISIONS } from "../../protocol/revisions.ts";
import { envelopeError, hasEnvelope, revisionOf, unsupported } from "../../protocol/envelope.ts";
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
export function routeOf({ body, headers }: Pick<HttpRequest, "body" | "headers">): Route {
  if (body === undefined) return SESSION;
  if (Array.isArray(body)) return routeOfBatch(body);
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
    // A proxy between client and PML may filter by headers, so they must match the body.
    const error = isDefined(method) || !hasEnvelope(params)
      ? undefined
      : errorOf(method, { params, headers });
    return error === undefined
      ? { kind: "notification", method, params, members: messageMembers(message) }
      : { kind: "refused", id: "null", error };
  }
  const error = hasEnvelope(params)
    ? errorOf(method, { params, headers })
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

/** Only sessions accept batches of messages. */
function routeOfBatch(all: readonly unknown[]): Route {
  const isTaken = all.length > 0 && all.every((one) => {
    const read = classify(one);
    return read.kind !== "refusal" &&
      !hasEnvelope(objectOf(read.message.params));
  });
  if (isTaken) return SESSION;
  const why = "a batch may contain only messages of an older revision";
  const error = { code: ERROR.invalidRequest, message: `Invalid request: ${why}` };
  return { kind: "refused", id: "null", error };
}

function isStateless(headers: RequestHeaders): boolean {
  const [oldest = ""] = STATELESS_REVISIONS.toSorted();
  return (headers["mcp-protocol-version"] ?? "").trim() >= oldest;
}

/** Returns the error for an invalid request of the stateless revision. */
function errorOf(
  method: string,
  { params, headers }: { readonly params: JsonObject; readonly headers: RequestHeaders },
): ErrorObject | undefined {
  const invalid = envelopeError(params);
  if (invalid !== undefined) return invalid;
  const revision = String(revisionOf(params));
  const named = headers["mcp-protocol-version"]?.trim();
  if (named !== undefined && named !== revision) {
    return mismatch("MCP-Protocol-Version", named, revision);
  }
  const error = unsupported(revision);
  if (error !== undefined) return error;
  if (named === undefined) return mismatch("MCP-Protocol-Version", named, revision);
  const called = headers["mcp-method"]?.trim();
  if (called !== method) return mismatch("Mcp-Method", called, method);
  const parameter = namedBy(method, params);
  if (typeof parameter !== "string") return undefined;
  const name = headers["mcp-name"]?.trim();
  return name !== undefined && decoded(name) === parameter
    ? undefined
    : mismatch("Mcp-Name", name, parameter);
}

/** Returns the decoded text of a header; undefined if its encoding is invalid. */
function decoded(value: string): string | undefined {
  if (!value.startsWith("=?base64?") || !value.endsWith("?=")) return value;
  const [, encoded] = BASE64.exec(value) ?? [];
  if (encoded === undefined) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true })
      .decode(Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0)));
  } catch {
    return undefined;
  }
}

function mismatch(header: string, value: string | undefined, expected: string): ErrorObject {
  const has = value === undefined ? "is missing" : `is ${JSON.stringify(value)}`;
  return {
    code: ERROR.headerMismatch,
    message: `The header ${header} ${has}, and the body has ${JSON.stringify(expected)}`,
    data: { mismatch: { header: value ?? "(missing)", body: expected } },
  };
}
