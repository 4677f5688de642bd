/**
 * What a request carries beside its params, as far as it is plainly valid, and what every answer of
 * the newest revision carries. A test compares both with the SDK.
 *
 * @module
 */

import { numberOf } from "../core/exact_number.ts";
import { isObject, type Json, type JsonObject, objectOf, setMember } from "../core/json.ts";
import { LEVELS } from "../core/levels.ts";

/** The revisions without `initialize`. A test compares them with the SDK's. */
export const MODERN: readonly string[] = ["2026-07-28"];

const PREFIX = "io.modelcontextprotocol/";
const VERSION = `${PREFIX}protocolVersion`;
const CLIENT = `${PREFIX}clientInfo`;
const CAPABILITIES = `${PREFIX}clientCapabilities`;
const LEVEL = `${PREFIX}logLevel`;
const SERVER = `${PREFIX}serverInfo`;
const RESERVED = [VERSION, CLIENT, CAPABILITIES, LEVEL];

/** The methods whose results may be kept, and those that may end with a question. */
const KEPT =
  /^(?:(?:tools|prompts|resources|resources\/templates)\/list|resources\/read|server\/.*)$/;
const ASKING = ["tools/call", "prompts/get", "resources/read"];

/** Whether a connection begins with `initialize`, or each request names its revision. */
export type Era = "legacy" | "modern";

/** The params of a request, and what is no param of it. */
export interface Lifted {
  readonly params: JsonObject;
  readonly envelope?: JsonObject;
  readonly inputResponses?: JsonObject;
  readonly requestState?: unknown;
}

/** Returns the era of a request; undefined if it is not plainly a request of either. */
export function eraOf(params: JsonObject): Era | undefined {
  const { _meta } = params;
  if (_meta === undefined) return "legacy";
  if (!isObject(_meta)) return undefined;
  const meta = objectOf(_meta);
  if (!RESERVED.some((key) => key in meta)) return "legacy";
  return isPlain(meta) ? "modern" : undefined;
}

/** Returns the revision that a request of the newest era names. */
export function revisionOf({ _meta }: JsonObject): unknown {
  return objectOf(_meta)[VERSION];
}

/** Takes out of the params what is none, as the SDK does. */
export function lift(params: JsonObject): Lifted {
  const isRetry = "inputResponses" in params || "requestState" in params;
  if (!isRetry && params._meta === undefined) return { params };
  const { inputResponses, requestState, ...rest } = params;
  const retry = {
    requestState,
    ...inputResponses !== undefined && { inputResponses: answersIn(inputResponses) },
  };
  if (rest._meta === undefined) return { params: rest, ...retry };
  const meta = objectOf(rest._meta);
  if (!RESERVED.some((key) => key in meta)) return { params: rest, ...retry };
  const own: Record<string, Json> = {};
  const envelope: Record<string, Json> = {};
  for (const [key, value] of Object.entries(meta)) {
    setMember(RESERVED.includes(key) ? envelope : own, key, value);
  }
  const { _meta: _, ...others } = rest;
  const has = Object.keys(own).length > 0;
  return { params: has ? { ...others, _meta: own } : others, envelope, ...retry };
}

/** Returns a result as a client of the newest revision takes it. Throws for one that is none. */
export function modernResult(
  method: string,
  { result, serverInfo }: { readonly result: JsonObject; readonly serverInfo: object },
): JsonObject {
  const { resultType = "complete", _meta = {} } = result;
  const isComplete = resultType === "complete";
  if (!isComplete && !ASKING.includes(method)) throw new Error("Internal error");
  const { cacheScope } = result;
  const ttlMs = numberOf(result.ttlMs);
  return {
    ...result,
    resultType,
    ...isComplete && KEPT.test(method) && {
      ttlMs: Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 0 ? ttlMs : 0,
      cacheScope: cacheScope === "public" ? cacheScope : "private",
    },
    _meta: isObject(_meta) ? { [SERVER]: serverInfo as JsonObject, ...objectOf(_meta) } : _meta,
  } as JsonObject; // what is missing is not written
}

/** Returns whether the progress token of a request, if it has one, is a string or a whole number. */
export function hasFitToken(params: JsonObject): boolean {
  const { progressToken = "" } = objectOf(params._meta);
  return typeof progressToken === "string" || Number.isInteger(numberOf(progressToken));
}

function isPlain(meta: JsonObject): boolean {
  const { [VERSION]: version, [LEVEL]: level = LEVELS[0] } = meta;
  return MODERN.includes(version as string) && LEVELS.includes(level as string) &&
    isPlainClient(meta[CLIENT]) && isAble(meta[CAPABILITIES]);
}

function isPlainClient(client: unknown): boolean {
  if (client === undefined) return true;
  if (!isObject(client) || "icons" in client) return false;
  const { name, version, title = "", websiteUrl = "", description = "" } = client;
  return [name, version, title, websiteUrl, description].every((one) => typeof one === "string");
}

function isAble(able: unknown): boolean {
  if (!isObject(able)) return false;
  const { experimental = {}, sampling = {}, elicitation = {}, roots = {}, extensions = {} } = able;
  const parts = [experimental, sampling, elicitation, extensions];
  if (!isObject(roots) || !parts.every(isObject)) return false;
  const { listChanged = true } = roots;
  const { applyDefaults = true } = objectOf(objectOf(elicitation).form);
  return typeof listChanged === "boolean" && typeof applyDefaults === "boolean" &&
    parts.every((part) => Object.values(part as object).every(isObject));
}

/** Leaves out what can be no answer of a client. */
function answersIn(said: unknown): JsonObject {
  return Object.fromEntries(
    Object.entries(objectOf(said))
      .filter(([, one]) => isObject(one) && !("method" in one) && !("result" in one)),
  );
}
