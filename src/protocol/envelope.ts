/**
 * The reserved members of requests (`_meta` and answers to questions), if they are valid, and those
 * of each result in the stateless revision. A test compares both with the SDK.
 *
 * @module
 */

import { numberOf } from "../core/exact_number.ts";
import { hasAny, isObject, type Json, type JsonObject, objectOf, setMember } from "../core/json.ts";
import { LEVELS } from "./levels.ts";
import { ERROR, type ErrorObject } from "./errors.ts";
import { isDefined, STATELESS_REVISIONS } from "./revisions.ts";

/** The members of `_meta` that every request or result of the stateless revision may have. */
export const META = {
  version: "io.modelcontextprotocol/protocolVersion",
  client: "io.modelcontextprotocol/clientInfo",
  capabilities: "io.modelcontextprotocol/clientCapabilities",
  level: "io.modelcontextprotocol/logLevel",
  server: "io.modelcontextprotocol/serverInfo",
} as const;
const RESERVED: readonly string[] = [META.version, META.client, META.capabilities, META.level];

/** The methods whose results may be cached, and those that may end with a question. */
const KEPT =
  /^(?:(?:tools|prompts|resources|resources\/templates)\/list|resources\/(?:directory\/)?read|skills\/(?:list|get)|server\/.*)$/;
const ASKING = ["tools/call", "prompts/get", "resources/read"];

/** The params of a request, separated from its reserved members. */
export interface Lifted {
  readonly params: JsonObject;
  readonly envelope?: JsonObject;
  readonly inputResponses?: JsonObject;
  readonly requestState?: unknown;
}

/** Returns whether a request names a revision, so that it is not one of the older ones. */
export function hasEnvelope({ _meta }: JsonObject): boolean {
  return META.version in objectOf(_meta);
}

/** Returns the revision that a request of the stateless kind names. */
export function revisionOf({ _meta }: JsonObject): unknown {
  return objectOf(_meta)[META.version];
}

/** Separates the reserved members from the params, as the SDK does. */
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
  if (!hasAny(meta, RESERVED)) return { params: rest, ...retry };
  const own: Record<string, Json> = {};
  const envelope: Record<string, Json> = {};
  for (const [key, value] of Object.entries(meta)) {
    setMember(RESERVED.includes(key) ? envelope : own, key, value);
  }
  const { _meta: _, ...others } = rest;
  const has = Object.keys(own).length > 0;
  return { params: has ? { ...others, _meta: own } : others, envelope, ...retry };
}

/** Returns a result for a client of the stateless revision. Throws if it is not a valid result. */
export function statelessResult(
  method: string,
  { result, serverInfo }: { readonly result: JsonObject; readonly serverInfo: object },
): JsonObject {
  const { resultType = "complete", _meta = {} } = result;
  const isComplete = resultType === "complete";
  if (!isComplete && !mayEnd(method, resultType)) throw new Error("Internal error");
  const { cacheScope } = result;
  const ttlMs = numberOf(result.ttlMs);
  return {
    ...result,
    resultType,
    ...isComplete && KEPT.test(method) && {
      ttlMs: Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 0 ? ttlMs : 0,
      cacheScope: cacheScope === "public" ? cacheScope : "private",
    },
    _meta: isObject(_meta)
      ? { [META.server]: serverInfo as JsonObject, ...objectOf(_meta) }
      : _meta,
  } as JsonObject; // JSON leaves out undefined members
}

/** Returns whether a result may have this type. Extension methods may end with a question, too. */
function mayEnd(method: string, resultType: unknown): boolean {
  return ASKING.includes(method) || resultType === "input_required" && !isDefined(method);
}

/**
 * Returns the error for an invalid progress token, which requests of all revisions may have;
 * undefined if the token is valid or missing.
 */
export function tokenError(params: JsonObject): ErrorObject | undefined {
  const { progressToken = "" } = objectOf(params._meta);
  if (typeof progressToken === "string" || Number.isInteger(numberOf(progressToken))) {
    return undefined;
  }
  return invalidMeta({ key: "progressToken", problem: "neither a string nor an integer" });
}

/** Returns the first error in the `_meta` of a request that names a revision. Accepts any revision. */
export function envelopeError(params: JsonObject): ErrorObject | undefined {
  const issue = envelopeIssue(objectOf(params._meta));
  return tokenError(params) ?? (issue && invalidMeta(issue));
}

function invalidMeta(issue: EnvelopeIssue): ErrorObject {
  const message = `Invalid params: _meta: ${issue.key}: ${issue.problem}`;
  return { code: ERROR.invalidParams, message, data: { envelope: issue } };
}

/** An invalid member of `_meta`. */
interface EnvelopeIssue {
  /** The member. */
  readonly key: string;
  readonly problem: string;
}

function envelopeIssue(meta: JsonObject): EnvelopeIssue | undefined {
  const {
    [META.version]: version,
    [META.client]: client,
    [META.capabilities]: able,
    [META.level]: level,
  } = meta;
  if (version === undefined) return { key: META.version, problem: "missing" };
  if (able === undefined) return { key: META.capabilities, problem: "missing" };
  if (typeof version !== "string") return { key: META.version, problem: "not a string" };
  if (client !== undefined && !isClientInfo(client)) {
    return { key: META.client, problem: "not an object with a name and a version" };
  }
  if (!isAble(able)) return { key: META.capabilities, problem: "not an object of capabilities" };
  if (level !== undefined && !LEVELS.includes(String(level))) {
    return { key: META.level, problem: `not one of ${LEVELS.join(", ")}` };
  }
  return undefined;
}

/** Returns the error for a request whose revision PML does not speak; undefined for the others. */
export function unsupported(requested: unknown): ErrorObject | undefined {
  if (typeof requested === "string" && STATELESS_REVISIONS.includes(requested)) return undefined;
  const named = typeof requested === "string" ? { requested } : {};
  return {
    code: ERROR.unsupportedProtocolVersion,
    message: `Unsupported protocol version: ${named.requested ?? "the request names none"}`,
    data: { supported: STATELESS_REVISIONS, ...named },
  };
}

/** Returns whether a value has the members of `clientInfo`. */
export function isClientInfo(client: unknown): boolean {
  if (!isObject(client)) return false;
  const { name, version, icons = [], title = "", websiteUrl = "", description = "" } = client;
  return Array.isArray(icons) && icons.every(isObject) &&
    [name, version, title, websiteUrl, description].every((one) => typeof one === "string");
}

function isAble(able: unknown): boolean {
  if (!isObject(able)) return false;
  const { experimental = {}, sampling = {}, elicitation = {}, roots = {}, extensions = {} } = able;
  if (![experimental, sampling, elicitation, roots, extensions].every(isObject)) return false;
  const { listChanged = true } = objectOf(roots);
  const { form = {}, url = {} } = objectOf(elicitation);
  const { tools = {}, context = {} } = objectOf(sampling);
  const { applyDefaults = true } = objectOf(form);
  const parts = [form, url, tools, context, ...valuesOf(experimental), ...valuesOf(extensions)];
  return typeof listChanged === "boolean" && typeof applyDefaults === "boolean" &&
    parts.every(isObject);
}

function valuesOf(object: unknown): readonly unknown[] {
  return Object.values(objectOf(object));
}

/** Returns the members that can be answers of a client. */
function answersIn(responses: unknown): JsonObject {
  return Object.fromEntries(
    Object.entries(objectOf(responses))
      .filter(([, one]) => isObject(one) && !("method" in one) && !("result" in one)),
  );
}
