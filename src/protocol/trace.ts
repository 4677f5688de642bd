/**
 * Spans of requests: the interface of a tracer, and the trace context of W3C in `_meta`.
 *
 * @module
 */

import { PmlError } from "../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { RpcError } from "./errors.ts";

/** A span, as its children and other programs refer to it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  /** Whether the trace is recorded. */
  readonly isSampled: boolean;
  /** The `tracestate` of the client. */
  readonly state: string | undefined;
}

/** The class of a failure; undefined if the request succeeded. */
export type ErrorType = string | number | undefined;

/** The open span of a request. */
export interface RequestSpan extends TraceContext {
  /** Ends the span. `endedAt` is a time of `performance.now()`. */
  end(endedAt: number, error: ErrorType): void;
}

/** The facts about a client's request that its span contains. */
export interface ServedRequest {
  readonly method: string;
  readonly params: JsonObject;
  /** The `_meta` of its params. */
  readonly meta: JsonObject | undefined;
  /** The id, as JSON. */
  readonly idText: string;
  /** When the request began, by `performance.now()`. */
  readonly since: number;
  /** The revision of MCP. */
  readonly revision: string | undefined;
  /** The id of its session over HTTP. It is a credential, so only its hash is exported. */
  readonly session: string | undefined;
  /** Whether the client uses HTTP. */
  readonly isRemote: boolean;
}

/** A request that PML sent and that has no answer yet. */
export interface TracedRequest {
  readonly id: number;
  readonly method: string;
  /** When the request was sent, by `performance.now()`. */
  readonly sentAt: number;
  /** `client.trace` is the span of the client's request, and becomes the parent of this span. */
  readonly options: { readonly client: { readonly trace?: TraceContext | undefined } };
}

/** The facts about a connection to a server that the spans of its requests contain. */
export interface SpanTarget {
  /** The name of the server. */
  readonly server: string;
  /** The revision of MCP; undefined before the handshake. */
  readonly revision: string | undefined;
  /** The address of the server, if it has one. */
  readonly address: URL | undefined;
  /** The id of its session over HTTP. It is a credential, so only its hash is exported. */
  readonly session?: string | undefined;
}

/** A call of a tool that PML ran itself: of a module, or of a capability. */
export interface RunCall {
  readonly tool: string;
  readonly server: string;
  /** The span that the call belongs to. */
  readonly parent: TraceContext | undefined;
  /** When the call began, by `performance.now()`. */
  readonly since: number;
  /** When the call ended, by `performance.now()`. */
  readonly ended: number;
  /** The result of the call; undefined if it failed. */
  readonly result: unknown;
}

/** Begins the spans of requests. */
export interface Tracer {
  /** Begins the span of a request of a client. */
  beginServed(request: ServedRequest): RequestSpan;
  /** Begins the span of a request to a server. */
  beginSent(
    request: TracedRequest,
    params: JsonObject | undefined,
    target: SpanTarget,
  ): RequestSpan;
  /** Records the span of a call that PML ran itself. */
  recordRun(call: RunCall): void;
}

/**
 * Returns the class of a failure by the OpenTelemetry conventions: an error's JSON-RPC code, its code
 * in PML, or `tool_error` for a result that is an error. Returns undefined if the request succeeded.
 */
export function errorTypeOf(result: unknown, error?: unknown): ErrorType {
  if (error === undefined) {
    return isObject(result) && result.isError === true ? "tool_error" : undefined;
  }
  if (error instanceof RpcError) return error.code;
  return error instanceof PmlError ? error.code : "_OTHER";
}

/** A `traceparent`. A future version may have more fields. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
/** The maximum length of a `tracestate` that PML passes on. W3C requires at least 512 characters. */
const STATE_MAX = 512;
/** The maximum number of members of a `tracestate`, by W3C Trace Context, section 3.3.1. */
const MEMBERS_MAX = 32;
/** Matches a member of a `tracestate`, by the same section. */
const MEMBER =
  /^[a-z\d][a-z\d_\-*/]{0,255}(@[a-z][a-z\d_\-*/]{0,13})?=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}$/;

/** Returns the trace context in a `_meta`; undefined if there is no valid context. */
export function traceContextIn(meta: JsonObject | undefined): TraceContext | undefined {
  const parent = meta?.traceparent;
  if (typeof parent !== "string") return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(parent) ?? [];
  const isKnownVersion = version === "00" ? more === undefined : version !== "ff";
  if (!isKnownVersion || traceId === undefined || spanId === undefined || flags === undefined) {
    return undefined;
  }
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return {
    traceId,
    spanId,
    isSampled: (parseInt(flags, 16) & 1) === 1,
    state: stateIn(meta?.tracestate),
  };
}

/** Returns a valid `tracestate`; undefined if one of its members is invalid. */
function stateIn(state: Json | undefined): string | undefined {
  if (typeof state !== "string" || state.length > STATE_MAX) return undefined;
  const members = state.split(",").map((member) => member.replace(/^[ \t]+|[ \t]+$/g, ""))
    .filter((member) => member !== "");
  const isValid = members.length > 0 && members.length <= MEMBERS_MAX &&
    members.every((member) => MEMBER.test(member));
  return isValid ? members.join(",") : undefined;
}

/** Adds the members of a trace context to a `_meta`. */
export function addTrace(
  { traceId, spanId, isSampled, state }: TraceContext,
  meta: Record<string, Json>,
): void {
  // `join()` creates a flat string. V8 takes twice as long to write a concatenated one as JSON.
  meta.traceparent = ["00", traceId, spanId, isSampled ? "01" : "00"].join("-");
  if (state !== undefined) meta.tracestate = state;
}
