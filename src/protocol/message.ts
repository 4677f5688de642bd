/**
 * Reads messages of clients and servers, within limits, and writes answers.
 *
 * @module
 */

import { numberText } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, objectOf } from "../core/json.ts";
import { exceededLimit, idIn, TOO_DEEP } from "../core/json_bounds.ts";
import { parseExact } from "../core/exact_json.ts";
import { parseMessage } from "../core/json_text.ts";
import type { Line } from "../io/lines.ts";
import { ERROR, type ErrorObject } from "./errors.ts";

/** An error response that PML sends itself. */
export interface MessageRefusal {
  readonly kind: "refusal";
  /** The id of the request, if it is known. */
  readonly id?: Json | undefined;
  readonly code: number;
  readonly text: string;
}

/** A valid message. Ids of requests are JSON texts, so that `1` and `"1"` differ. */
export type Message =
  | RequestMessage
  | CancelMessage
  | { readonly kind: "notification"; readonly message: JsonObject }
  | { readonly kind: "response"; readonly message: JsonObject };

/** A notification that cancels a request. */
export interface CancelMessage {
  readonly kind: "cancel";
  readonly message: JsonObject;
  /** The id of the request, as JSON. */
  readonly request: string;
  readonly reason: unknown;
}

/** A valid request. */
export interface RequestMessage {
  readonly kind: "request";
  readonly message: JsonObject;
  /** The id, as JSON. */
  readonly id: string;
}

/** The result of reading a line: a valid message, or the refusal of an invalid message. */
export type ReadLine = MessageRefusal | Message;

const NOT_ONE_OBJECT = "Invalid request: not one JSON-RPC 2.0 object";
/** The maximum length of a request id of a server, in characters. */
const SERVER_ID_MAX = 1_000;
/** Decodes invalid UTF-8 as U+FFFD, because some servers write it. */
const UTF_8 = new TextDecoder();
const VALID_UTF_8 = new TextDecoder("utf-8", { fatal: true });
const REPLACEMENT = "\ufffd";

/** The sender of a message. */
export type Sender = "client" | "server";

/** The value of a JSON text, or the limit that it exceeds. An invalid text has no value. */
export type ReadText =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "excess"; readonly why: string }
  | { readonly kind: "invalid"; readonly value?: undefined };

/**
 * Reads the JSON text of a message, within limits. Numbers keep their digits. Keeps the texts of
 * large results of servers for `textOfResult()`.
 */
export function readText(bytes: Uint8Array, sender: Sender): ReadText {
  const why = exceededLimit(bytes);
  if (why !== undefined) return { kind: "excess", why };
  try {
    let text = UTF_8.decode(bytes).trim();
    // Decoding strictly at once takes three times as long.
    if (sender === "client" && text.includes(REPLACEMENT)) text = VALID_UTF_8.decode(bytes).trim();
    return { kind: "value", value: sender === "server" ? parseMessage(text) : parseExact(text) };
  } catch {
    return { kind: "invalid" }; // for example a log line, or half of a message
  }
}

/** Reads a line of a client. Returns undefined for an empty line. */
export function readMessage(line: Line): ReadLine | undefined {
  if (line.kind !== "line") {
    return refusal(
      ERROR.invalidRequest,
      `INPUT_TOO_LARGE: a message has more than ${line.max} bytes`,
    );
  }
  const message = readText(line.bytes, "client");
  if (message.kind === "value") return classify(message.value);
  if (message.kind === "invalid") {
    const isEmpty = UTF_8.decode(line.bytes).trim() === "";
    return isEmpty ? undefined : refusal(ERROR.parse, "Parse error: the line is not JSON in UTF-8");
  }
  const { why } = message;
  const id = idIn(line.bytes);
  // Without an id, this may not be a message at all.
  if (id === undefined && why === TOO_DEEP) return refusal(ERROR.parse, `Parse error: ${why}`);
  return { ...refusal(ERROR.invalidRequest, `INPUT_TOO_LARGE: ${why}`), id };
}

/** Returns the JSON-RPC error response of a refusal. */
export function refusalMessage({ id, code, text }: MessageRefusal): JsonObject {
  return { jsonrpc: "2.0", id: id ?? null, error: { code, message: text } };
}

/** Returns the text of an answer. `members` is the text of its result or error; `id` is JSON. */
export function answerText(id: string, members: string): string {
  return `{${members},"jsonrpc":"2.0","id":${id}}`;
}

/** Returns the text of the member `result` of an answer. */
export function resultText(result: JsonObject): string {
  return `"result":${JSON.stringify(result)}`;
}

/** Returns the text of the member `error` of an answer. */
export function errorText(error: ErrorObject): string {
  return `"error":${JSON.stringify(error)}`;
}

/** Returns a JSON value as a message, or the refusal if it is not a valid message. */
export function classify(value: unknown): ReadLine {
  if (!isObject(value)) return refusal(ERROR.invalidRequest, NOT_ONE_OBJECT);
  const message = readObject(value);
  const { id } = value;
  // A refusal has the id only if the message is a request, because its sender waits for this id.
  return message.kind === "refusal" && "method" in value && isId(id) ? { ...message, id } : message;
}

function readObject(value: Record<string, unknown>): ReadLine {
  if (value.jsonrpc !== "2.0") return refusal(ERROR.invalidRequest, NOT_ONE_OBJECT);
  const message = value as JsonObject;
  const { id, method, params } = value;
  if ("method" in value && typeof method !== "string") {
    return refusal(ERROR.invalidRequest, "Invalid request: the method is not a string");
  }
  if (params !== undefined && !isObject(params)) {
    return refusal(ERROR.invalidRequest, "Invalid request: params is not an object");
  }
  if (!("id" in value)) {
    if (method === undefined) return refusal(ERROR.invalidRequest, "Invalid request: no method");
    return notification(message);
  }
  if (!isId(id)) {
    return refusal(
      ERROR.invalidRequest,
      "Invalid request: the id is neither a string nor an integer",
    );
  }
  if (method === undefined) return { kind: "response", message };
  if (params?._meta !== undefined && !isObject(params._meta)) {
    return refusal(ERROR.invalidParams, "Invalid params: _meta is not an object");
  }
  return { kind: "request", message, id: JSON.stringify(id) };
}

/**
 * Returns a JSON value of a server as a message; undefined if it is not valid. Checks only the
 * required members, because some servers violate the specification.
 */
export function messageOfServer(value: unknown): Message | undefined {
  if (!isObject(value)) return undefined;
  const message = value as JsonObject;
  const { id, method } = message;
  if (typeof method !== "string") return { kind: "response", message };
  if (id === undefined) return notification(message);
  const text = typeof id === "string" ? id : numberText(id);
  if (text === undefined || text.length > SERVER_ID_MAX) return undefined;
  return { kind: "request", message, id: JSON.stringify(id) };
}

function notification(message: JsonObject): Message {
  if (message.method !== "notifications/cancelled") return { kind: "notification", message };
  const { requestId, reason } = objectOf(message.params);
  return { kind: "cancel", message, request: JSON.stringify(requestId) ?? "", reason };
}

/** Returns the notification, but with the id of another request. */
export function withRequestId({ message }: CancelMessage, requestId: string): JsonObject {
  return { ...message, params: { ...objectOf(message.params), requestId } };
}

/** Returns whether a value is the id of a request: a string, or an integer of any size. */
function isId(id: unknown): id is Json {
  if (typeof id === "string" || Number.isSafeInteger(id)) return true;
  const text = numberText(id);
  if (text === undefined) return false;
  return /^-?\d+$/.test(text) || Number.isInteger(Number(text));
}

function refusal(code: number, text: string): MessageRefusal {
  return { kind: "refusal", code, text };
}
