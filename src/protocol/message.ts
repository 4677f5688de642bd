/**
 * Reads one line from a client: a message, or a refusal if the line is not valid.
 *
 * @module
 */

import { numberText } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject } from "../core/json.ts";
import { excessOf, idIn, TOO_DEEP } from "../core/json_bounds.ts";
import { parseExact } from "../core/exact_json.ts";
import type { Line } from "../io/lines.ts";
import { ERROR } from "./errors.ts";

/** An error response that PML sends itself. */
export interface Refusal {
  readonly kind: "refusal";
  /** The id of the request, if it is known. */
  readonly id?: Json | undefined;
  readonly code: number;
  readonly text: string;
}

/** A line that was read. Ids are JSON texts, so that `1` and `"1"` differ. */
export type ReadLine =
  | Refusal
  | { readonly kind: "request"; readonly message: JsonObject; readonly id: string }
  | {
    readonly kind: "cancel";
    readonly message: JsonObject;
    readonly request: string;
    readonly reason: unknown;
  }
  | { readonly kind: "other"; readonly message: JsonObject };

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const NO_OBJECT = "Invalid request: not one JSON-RPC 2.0 object";
const BYTE_ORDER_MARK = /^\uFEFF/;

/** Reads a line; undefined for an empty one. */
export function readMessage(line: Line): ReadLine | undefined {
  if (line.kind !== "line") {
    return refusal(
      ERROR.invalidRequest,
      `INPUT_TOO_LARGE: a message has more than ${line.max} bytes`,
    );
  }
  const excess = excessOf(line.bytes);
  if (excess !== undefined) {
    const id = idIn(line.bytes);
    // Without an id, this may not be a message at all.
    if (id === undefined && excess === TOO_DEEP) {
      return refusal(ERROR.parse, `Parse error: ${excess}`);
    }
    return { ...refusal(ERROR.invalidRequest, `INPUT_TOO_LARGE: ${excess}`), id };
  }
  let value: unknown;
  try {
    const text = UTF_8.decode(line.bytes).replace(BYTE_ORDER_MARK, "").trim();
    if (text === "") return undefined;
    value = parseExact(text);
  } catch {
    return refusal(ERROR.parse, "Parse error: the line is not JSON in UTF-8");
  }
  return classify(value);
}

/** Returns the JSON-RPC error response of a refusal. */
export function refusalMessage({ id, code, text }: Refusal): unknown {
  return { jsonrpc: "2.0", id: id ?? null, error: { code, message: text } };
}

/** Returns what a JSON text says, if it is a message. */
export function classify(value: unknown): ReadLine {
  if (!isObject(value)) return refusal(ERROR.invalidRequest, NO_OBJECT);
  const read = readObject(value);
  const { id } = value;
  // The sender of anything else than a request waits for no answer with this id.
  return read.kind === "refusal" && "method" in value && isId(id) ? { ...read, id } : read;
}

function readObject(value: Record<string, unknown>): ReadLine {
  if (value.jsonrpc !== "2.0") return refusal(ERROR.invalidRequest, NO_OBJECT);
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
    if (method !== "notifications/cancelled") return { kind: "other", message };
    const { requestId, reason } = params ?? {};
    return { kind: "cancel", message, request: JSON.stringify(requestId) ?? "", reason };
  }
  if (!isId(id)) {
    return refusal(
      ERROR.invalidRequest,
      "Invalid request: the id is neither a string nor an integer",
    );
  }
  if (method === undefined) return { kind: "other", message };
  if (params?._meta !== undefined && !isObject(params._meta)) {
    return refusal(ERROR.invalidParams, "Invalid params: _meta is not an object");
  }
  return { kind: "request", message, id: JSON.stringify(id) };
}

/** Returns whether a value is the id of a request: a string, or an integer of any size. */
function isId(id: unknown): id is Json {
  if (typeof id === "string" || Number.isSafeInteger(id)) return true;
  const text = numberText(id);
  if (text === undefined) return false;
  return /^-?\d+$/.test(text) || Number.isInteger(Number(text));
}

function refusal(code: number, text: string): Refusal {
  return { kind: "refusal", code, text };
}
