/**
 * Reads and checks the reserved members of requests (keys of `_meta`, and answers to questions),
 * and adds the reserved members to results of the stateless revision. A test compares the reading
 * and the results with the SDK.
 *
 * @module
 */

import { numberOf } from "../core/exact_number.ts";
import { hasAny, isObject, type Json, type JsonObject, objectOf, setMember } from "../core/json.ts";
import { LEVELS } from "./levels.ts";
import { ERROR, type ErrorObject } from "./errors.ts";
import { isDefinedMethod, STATELESS_REVISIONS } from "./revisions.ts";

/** The reserved keys of `_meta` in requests and results of the stateless revision. */
export const META = {
  version: "io.modelcontextprotocol/protocolVersion",
  client: "io.modelcontextprotocol/clientInfo",
  capabilities: "io.modelcontextprotocol/clientCapabilities",
  level: "io.modelcontextprotocol/logLevel",
  server: "io.modelcontextprotocol/serverInfo",
} as const;
/** The reserved keys of `_meta` in requests. */
const RESERVED_KEYS: readonly string[] = [META.version, META.client, META.capabilities, META.level];

/** The methods whose results clients may cache. */
const CACHEABLE_METHODS =
  /^(?:(?:tools|prompts|resources|resources\/templates)\/list|resources\/(?:directory\/)?read|skills\/(?:list|get)|server\/.*)$/;
/** The methods whose result may ask the client for input. */
const METHODS_WITH_INPUT = ["tools/call", "prompts/get", "resources/read"];

/** The params of a request, and its reserved members. */
export interface SeparatedParams {
  readonly params: JsonObject;
  readonly envelope?: JsonObject;
  readonly inputResponses?: JsonObject;
  readonly requestState?: unknown;
}

/** Returns whether a request contains its revision, as all requests of stateless revisions do. */
export function hasEnvelope({ _meta }: JsonObject): boolean {
  return META.version in objectOf(_meta);
}

/** Returns the revision in a request; undefined for a request that does not contain it. */
export function revisionOf({ _meta }: JsonObject): unknown {
  return objectOf(_meta)[META.version];
}

/** Separates the reserved members from the params, as the SDK does. */
export function separateReserved(params: JsonObject): SeparatedParams {
  const isRetry = "inputResponses" in params || "requestState" in params;
  const hasReserved = params._meta !== undefined && hasAny(objectOf(params._meta), RESERVED_KEYS);
  if (!isRetry && !hasReserved) return { params };
  const { inputResponses, requestState, ...rest } = params;
  const retry = {
    requestState,
    ...inputResponses !== undefined && { inputResponses: answersIn(inputResponses) },
  };
  if (!hasReserved) return { params: rest, ...retry };
  const meta = objectOf(rest._meta);
  const otherMeta: Record<string, Json> = {};
  const envelope: Record<string, Json> = {};
  for (const [key, value] of Object.entries(meta)) {
    setMember(RESERVED_KEYS.includes(key) ? envelope : otherMeta, key, value);
  }
  const { _meta: _, ...others } = rest;
  const hasOtherMeta = Object.keys(otherMeta).length > 0;
  return { params: hasOtherMeta ? { ...others, _meta: otherMeta } : others, envelope, ...retry };
}

/**
 * Returns a result for a client of the stateless revision. Throws if the method does not allow its
 * `resultType`.
 */
export function statelessResult(
  method: string,
  { result, serverInfo }: { readonly result: JsonObject; readonly serverInfo: object },
): JsonObject {
  const { resultType = "complete", _meta = {} } = result;
  const isComplete = resultType === "complete";
  if (!isComplete && !mayHaveType(method, resultType)) throw new Error("Internal error");
  const { cacheScope } = result;
  const ttlMs = numberOf(result.ttlMs);
  return {
    ...result,
    resultType,
    ...isComplete && CACHEABLE_METHODS.test(method) && {
      ttlMs: Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 0 ? ttlMs : 0,
      cacheScope: cacheScope === "public" ? cacheScope : "private",
    },
    _meta: isObject(_meta)
      ? { [META.server]: serverInfo as JsonObject, ...objectOf(_meta) }
      : _meta,
  } as JsonObject; // JSON leaves out undefined members
}

/** Returns whether a method allows a type of result. Methods of extensions may ask for input, too. */
function mayHaveType(method: string, resultType: unknown): boolean {
  return METHODS_WITH_INPUT.includes(method) ||
    resultType === "input_required" && !isDefinedMethod(method);
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

/** Returns the first error in the `_meta` of a stateless request, which may name any revision. */
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
    [META.capabilities]: capabilities,
    [META.level]: level,
  } = meta;
  if (version === undefined) return { key: META.version, problem: "missing" };
  if (capabilities === undefined) return { key: META.capabilities, problem: "missing" };
  if (typeof version !== "string") return { key: META.version, problem: "not a string" };
  if (client !== undefined && !isClientInfo(client)) {
    return { key: META.client, problem: "not an object with a name and a version" };
  }
  if (!isCapabilities(capabilities)) {
    return { key: META.capabilities, problem: "not an object of capabilities" };
  }
  if (level !== undefined && !LEVELS.includes(String(level))) {
    return { key: META.level, problem: `not one of ${LEVELS.join(", ")}` };
  }
  return undefined;
}

/**
 * Returns the error for a revision that PML does not speak; undefined if it speaks the revision.
 */
export function revisionError(requested: unknown): ErrorObject | undefined {
  if (typeof requested === "string" && STATELESS_REVISIONS.includes(requested)) return undefined;
  const requestedMember = typeof requested === "string" ? { requested } : {};
  return {
    code: ERROR.unsupportedProtocolVersion,
    message: `Unsupported protocol version: ${
      requestedMember.requested ?? "the request names none"
    }`,
    data: { supported: STATELESS_REVISIONS, ...requestedMember },
  };
}

/** Returns whether a value has the members of `clientInfo`. */
export function isClientInfo(client: unknown): boolean {
  if (!isObject(client)) return false;
  const { name, version, icons = [], title = "", websiteUrl = "", description = "" } = client;
  return Array.isArray(icons) && icons.every(isObject) &&
    [name, version, title, websiteUrl, description].every((value) => typeof value === "string");
}

function isCapabilities(capabilities: unknown): boolean {
  if (!isObject(capabilities)) return false;
  const { experimental = {}, sampling = {}, elicitation = {}, roots = {}, extensions = {} } =
    capabilities;
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

/**
 * Returns the members that can be answers: objects that are neither requests nor JSON-RPC answers.
 */
function answersIn(responses: unknown): JsonObject {
  return Object.fromEntries(
    Object.entries(objectOf(responses))
      .filter(([, response]) =>
        isObject(response) && !("method" in response) && !("result" in response)
      ),
  );
}
